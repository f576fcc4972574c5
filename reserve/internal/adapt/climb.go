package adapt

import (
	"math"
	"time"
)

// A climb is an experiment with a rate that refusals by chance may have cut far below what the server accepts:
// two of them end a search at 20 calls a second of 500. It begins where calls below the estimate are refused,
// or the rate is cut again and again. The search goes on from this rate, and the share of calls that was
// refused so far counts as the background. A limit soon refuses more than that, and the rate goes back to where
// it was. If it does not, there is a background.
//
// A climb takes a second or some ten calls, where a trial takes hundreds of them, so it comes first. But close to the limit it ends
// as if there were no background, and only a trial finds that.
type climb struct {
	from   float64 // rate
	begun  time.Time
	excess float64 // calls that were accepted beyond those of that rate
	growth growth  // before
	chance chance  // before
}

const (
	leastClimb = 3.     // calls per second: at a lower rate each refusal lasts for too long
	mostClimb  = 0.15   // of the calls: where more are refused, it is not by chance alone
	afterKnown = 1. / 8 // of the ceiling: a rate below it is far below what the server accepts
	afterStop  = 0.5    // of the rate at which a search ended, or the cuts began, where no rate is known
	afterCut   = 0.25   // the same where refusals bring no stops, so that a search goes on sooner anyway
	fallen     = 1. / 8 // of the rate when the cuts began: then two cuts are enough
	twoCuts    = 2.     // cuts
	fewest     = 12.    // calls: after so many more than the old rate allows a climb was right
	fullest    = 1.     // seconds: or after as many more as the old rate sends in it, since a full bucket hides them
	longest    = 30 * time.Second
	mostDoubt  = 4.
	slips      = 25. // times the background: an alarm on a climb needs so much more than the score of one refusal
)

// far reports whether the rate may be far below what the server accepts. A rate that is a half or a third of
// it may be this program's part of a limit that several programs share: then a climb takes away theirs.
func (r *Rate) far() bool {
	switch {
	case r.rate < leastClimb*r.cost || !math.IsInf(r.offered, 1): // what the server says is better known
		return false
	case !math.IsInf(r.ceiling, 1):
		return r.rate < afterKnown*r.ceiling
	case r.stopped > 0:
		return r.rate < afterStop*max(r.top, r.ended)
	default:
		return r.rate < afterCut*max(r.top, r.ended)
	}
}

// climbs reports whether it is time for a climb; low says that the rate is a small part of what it was.
func (c *chance) climbs(low bool) bool {
	cuts := patience
	if low {
		cuts = twoCuts
	}
	return !c.known() && !c.trial.on && c.all.rate() < mostClimb &&
		(c.lone.refused >= suspicious*c.doubt || c.cuts-c.tried >= cuts*c.doubt)
}

// ascend begins a climb.
func (r *Rate) ascend(now time.Time) {
	c := &r.chance
	r.climb = &climb{from: r.rate, begun: now, growth: r.growth, chance: *c}
	c.end(now, max(min(max(c.all.rate(), c.lone.rate()), mostShare), leastShare))
	c.climbing = true
	r.begin(search, r.rate)
	r.period, r.wasted = soonest*r.unit(), 0
}

// climbed counts a call that was accepted, and ends a climb that was right; and one that takes too long, since
// there are too few calls.
func (r *Rate) climbed(now, sent time.Time) {
	c := r.climb
	switch {
	case c == nil || !sent.After(c.begun):
		return
	case now.Sub(c.begun) > longest:
		r.abandon()
		return
	}
	rate := r.rate
	if perSecond, known := r.sent.perSecond(now); known {
		rate = min(rate, perSecond)
	}
	if c.excess += 1 - c.from/max(c.from, rate); c.excess >= max(fewest, fullest*c.from/r.cost) {
		r.climb = nil
		r.chance.climbing, r.chance.doubt = false, 1
	}
}

// descend ends a climb that was wrong: the refusals before it were about the rate.
func (r *Rate) descend(now time.Time) {
	r.abandon()
	r.chance.doubt = min(2*r.chance.doubt, mostDoubt)
	r.cut, r.stopped, r.proven, r.row, r.accepted, r.used = now, 0, false, 0, 0, now
}

// abandon ends a climb that was not right: all is as before it, but for the evidence that led to it.
func (r *Rate) abandon() {
	if c := r.climb; c != nil {
		r.growth, r.rate, r.chance, r.climb = c.growth, r.limit(c.from), c.chance, nil
		r.chance.tried, r.chance.lone = r.chance.cuts, tally{}
	}
}
