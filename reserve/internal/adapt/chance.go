package adapt

import "time"

// chance finds a background: a share of the calls that a server refuses at any rate, because a backend restarts, or a
// gateway drops one call in a hundred. 503s and 429s each may have one.
//
// A volley tells it from a limit: five calls at once, right after a refusal. A bucket that has just refused a call is
// empty and refuses most of the five, no matter how many programs have emptied it. A background refuses its share. So few
// programs or many, a volley needs no change of their rates, and costs them nothing.
//
// Events in quick succession bring volleys. A 429 needs four of them, one after each event, with at most three refusals in 20 calls.
// From then on each call adds the share to a budget of refusals that are no events. Refusals beyond it are events as ever.
//
// A volley tells nothing where it cannot be sharp: after a 429 with a time, because a bucket refills during the stop;
// below five calls a second, where buckets are smaller than a volley; and where a known rate, which a volley does not exceed either,
// was never right for long. There a 429 counts.
type chance struct {
	share  float64   // of the calls; 0: no background is known
	until  time.Time // the share is forgotten
	budget float64   // refusals that are no events

	surplus        float64   // events beyond two in a period; the law expects one
	counted        time.Time // when the latest of them came
	calls, refused float64   // since surplus was 0

	begun, ended time.Time // the volley: calls sent between belong to it
	send, open   int       // its calls that are not sent yet, not answered yet
	volleys      int       // answered, one after another
	hits         int       // refused calls of these
}

// Kinds of refusals.
const (
	tooMany = iota // 429
	unable         // 503, 529
	kinds
)

const (
	suspicious = 4.   // events of surplus that bring volleys
	mostShare  = 0.25 // of the calls: a background is never more
	volley     = 5    // calls
	enough     = 4    // volleys
	mostHits   = 3    // refused calls of these volleys, if it is a background
	atOnce     = 1000 // times the rate: the pace of a volley
	mostBudget = 10.  // refusals
	tolerance  = 1.5  // times the share of the calls, to the budget
)

// Chance reports whether a refusal of a call that was sent at the given time comes by chance, if it says that the
// server is not able to answer: then it stops only its own call. It must be asked before Refused.
func (r *Rate) Chance(sent time.Time) bool {
	c := &r.chance[unable]
	return c.share > 0 && c.budget >= 1 && (r.proven || !r.happened() || !sent.After(r.at))
}

// accepted counts a call that was accepted.
func (c *chance) accepted(now time.Time) {
	c.calls++
	c.budget = min(mostBudget, c.budget+float64(tolerance*c.share))
	if now.After(c.until) {
		c.share = 0
	}
	if c.open > 0 && now.Sub(c.begun).Seconds() > PerStop { // too few calls to tell
		c.send, c.open, c.volleys, c.hits = 0, 0, 0, 0
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

// suspect begins a volley after an event, if chance is suspected.
func (r *Rate) suspect(now time.Time, kind int) {
	c := &r.chance[kind]
	switch {
	case r.guesses > 0: // a search ends with a few events
		c.surplus = 0
	case kind == tooMany:
		c.surplus = max(0, c.surplus-2*now.Sub(c.counted).Seconds()/r.period())
	}
	if c.counted = now; c.surplus == 0 {
		c.calls, c.refused = 0, 0
	}
	c.surplus++
	likely := (c.surplus >= suspicious || c.volleys > 0) && c.refused <= mostShare*c.calls && r.guesses == 0
	if likely && r.chance[tooMany].open+r.chance[unable].open == 0 && (kind == unable || r.sharp()) {
		c.begun, c.send, c.open = now, volley, volley
	}
}

// sharp reports whether a volley would tell a background of 429s from a limit.
func (r *Rate) sharp() bool {
	return r.rate >= volley*r.cost && (r.lasted || r.ceiling >= atOnce*r.rate)
}

// sent counts a call that goes out, if a volley wants one.
func (c *chance) sent(now time.Time) {
	if c.send > 0 {
		c.send, c.ended = c.send-1, now
	}
}

// volleyed counts an answer: a kind of refusal, or kinds for none. It reports whether it was one to a call of a volley.
func (r *Rate) volleyed(now, sent time.Time, kind int) bool {
	for i := range r.chance {
		c := &r.chance[i]
		if c.open == 0 || !sent.After(c.begun) || sent.After(c.ended) {
			continue
		}
		if i == kind {
			c.hits++
		}
		if c.open--; c.open == 0 {
			c.judge(r, now, i)
		}
		return true
	}
	return false
}

// judge decides after a volley. A 503 is believed after one of them.
func (c *chance) judge(r *Rate, now time.Time, kind int) {
	if c.volleys++; c.hits <= mostHits && c.volleys < enough && kind == tooMany {
		return // the next event brings another one
	}
	share := 0.
	if c.hits <= mostHits {
		share = min(c.refused/c.calls, float64(c.hits+1)/float64(c.volleys*volley))
		r.searching = r.rate < r.ceiling // the refusals that have cut it came by chance
	}
	*c = chance{share: share, budget: mostBudget, until: now.Add(remembered)}
}
