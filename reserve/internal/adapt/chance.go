package adapt

import "time"

// chance is about a background: a share of calls that the server refuses whatever the rate, because a
// backend is restarted, or a gateway drops one in a hundred. It says so by 503 or 529. A 429 says that there were
// too many calls, this program's or another's, and always counts.
//
// After a few such events an experiment raises the rate by half. If that makes no measurable difference, there is a
// background. From then on each call adds its share to a budget of refusals that are no events. Whoever believes this wrongly is
// refused that much more, and all beyond it are events as ever.
type chance struct {
	share          float64 // of the calls; 0: no background is known
	budget         float64 // refusals that are no events
	until          time.Time
	calls, refused float64 // since the last experiment

	from  float64 // the rate before the experiment; 0: there is none
	begun time.Time
	extra float64 // calls that were accepted beyond those of that rate
}

const (
	suspicious = 4.   // refusals that lead to an experiment
	mostShare  = 0.25 // of the calls: a background is never more
	raised     = 1.5  // times the rate, in an experiment
	evidence   = 10.  // calls that were accepted beyond those of the old rate, or a second's worth of that, end it; and refusals
	tolerance  = 1.5  // times the share is no more than chance
)

// Chance reports whether a refusal of a call that was sent at the given time comes by chance, if it says that the
// server is not able to answer: then it stops only its own call. It must be asked before Refused.
func (r *Rate) Chance(sent time.Time) bool {
	return r.chance.share > 0 && r.chance.budget >= 1 && (r.proven || !r.happened() || !sent.After(r.at))
}

// accepted counts a call that was accepted.
func (c *chance) accepted(r *Rate, now, sent time.Time) {
	c.calls++
	c.budget = min(evidence, c.budget+float64(tolerance*c.share))
	switch {
	case c.from == 0:
		if now.After(c.until) {
			c.share = 0
		}
	case now.Sub(c.begun).Seconds() > PerStop: // there are too few calls to tell
		r.rate, *c = c.from, chance{}
	case sent.After(c.begun):
		rate := r.rate
		if answered := r.answered.perSecond(now); answered > 0 {
			rate = min(rate, answered)
		}
		if c.extra += 1 - c.from/max(c.from, rate); c.extra >= max(evidence, c.from/r.cost) {
			*c = chance{share: c.share, budget: c.budget, until: now.Add(remembered)}
			r.searching = r.rate < r.ceiling // the refusals that have cut it came by chance
		}
	}
}

// tolerated counts a refusal, and reports whether it is part of the background.
func (c *chance) tolerated() bool {
	c.calls++
	c.refused++
	if c.share == 0 || c.budget < 1 {
		return false
	}
	c.budget--
	return true
}

// suspect begins an experiment after an event, if chance is suspected.
func (r *Rate) suspect(now time.Time) {
	c := &r.chance
	if share := c.refused / c.calls; c.refused >= suspicious && share <= mostShare {
		*c = chance{share: share, budget: evidence, from: r.rate, begun: now}
		r.rate = r.limit(raised * r.rate)
	}
}

// disprove ends an experiment that made a difference: the rate is as before it.
func (r *Rate) disprove(now time.Time, stop time.Duration) {
	r.rate, r.chance = r.chance.from, chance{}
	r.begin(now, stop)
}
