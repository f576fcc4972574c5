package adapt

import (
	"math"
	"time"
)

// chance finds a background: a share of the calls that a server refuses at any rate, because a backend restarts, or a
// gateway drops one call in a hundred. 429s and 503s each may have one. [imposed] finds large ones.
//
// A volley tells it from a limit: five calls at once, right after a refusal. A bucket is empty then and refuses most of
// the five, however many programs share it. A background refuses its share. Events in quick succession bring volleys.
// After six of them with at most four refusals, each call adds the share to a budget of refusals that are no events.
//
// Where a bucket refills within a round trip, a volley finds it full, and a crowd looks like a background. So 429s by
// chance explain why a rate fell, not why it should rise: above the rate from which it fell each is an event.
//
// A program that believes in 503s, which have cut its rate, returns to the rate that a 429 cut last. If none has, it
// searches.
//
// A bucket refills during a stop. So a 503 that begins a volley stops only its own call, and is no event; no volley
// follows a 429 with a time. A volley of 429s proves nothing below five calls a second (buckets are smaller), and where
// a known rate, which it does not exceed, was never right for long.
type chance struct {
	share  float64   // of the calls; 0: no background is known
	until  time.Time // the share is forgotten
	budget float64   // refusals that are no events

	surplus        float64   // events beyond two in a period
	counted        time.Time // when the latest of them came
	fell           float64   // the rate before the first of them
	calls, refused float64   // since surplus was 0

	due     bool // a volley is, at the next 503
	volleys int  // answered, one after another
	hits    int  // refused calls of these
}

// A salvo is the volley that is out.
type salvo struct {
	kind         int
	begun, ended time.Time
	send, open   int // its calls not sent yet, not answered yet
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
	enough     = 6    // volleys
	mostHits   = 4    // refused calls of these volleys, if it is a background
	atOnce     = 1000 // times the rate: the pace of a volley
	mostBudget = 10.  // refusals
	tolerance  = 2.   // times the refusals of the share, to the budget
)

// Chance reports whether a refusal of a call sent then comes at any rate: it stops only its own call. notAble means 503
// or 529. Call it before Refused.
func (r *Rate) Chance(sent time.Time, notAble bool) bool {
	if !notAble {
		return r.imposed[tooMany].found > 0 && r.covered(tooMany)
	}
	asked := r.salvo.open > 0 && r.salvo.kind == unable
	return (r.chance[unable].due || asked || r.covered(unable)) && (r.proven || !sent.After(r.at))
}

// covered reports whether a refusal is no event.
func (r *Rate) covered(kind int) bool {
	c := &r.chance[kind]
	return c.share > 0 && c.budget >= 1 && (kind == unable || r.rate <= c.fell)
}

// spare counts an accepted call, which adds the share to the budget: twice, but for imposed 429s only once until a dip
// has shown that others are the cause.
func (r *Rate) spare(now time.Time, kind int) {
	c, times := &r.chance[kind], tolerance
	if i := &r.imposed[kind]; kind == tooMany && i.found > 0 && !i.proved() {
		times = 1
	}
	c.calls++
	c.budget = min(mostBudget, c.budget+float64(times*c.share/(1-c.share)))
	if now.After(c.until) {
		c.share = 0
	}
}

func (c *chance) count() {
	c.calls++
	c.refused++
}

// tolerated counts a refusal, and reports whether it is background.
func (r *Rate) tolerated(kind int) bool {
	covered := r.covered(kind)
	if r.chance[kind].count(); covered {
		r.chance[kind].budget--
	}
	return covered
}

// suspect counts an event at a rate, after which a volley may be due. A 429's follows at once.
func (r *Rate) suspect(now time.Time, rate float64, kind int) {
	c := &r.chance[kind]
	switch {
	case r.guesses > 0: // a search ends with a few events
		c.surplus = 0
	case kind == tooMany:
		c.surplus = max(0, c.surplus-2*now.Sub(c.counted).Seconds()/r.period())
	}
	if c.counted = now; c.surplus == 0 {
		c.calls, c.refused = 0, 0
		if now.After(c.until) {
			c.fell = rate
		}
	}
	c.surplus++
	likely := (c.surplus >= suspicious || c.volleys > 0) && c.refused <= mostShare*c.calls && r.guesses == 0
	tells := r.sharp()
	if kind == unable {
		tells = c.share == 0 && now.After(r.imposed[unable].wrong)
	}
	c.due = likely && tells
	if kind == tooMany && c.due {
		r.fire(now, kind)
	}
}

// fire begins a volley after a refusal.
func (r *Rate) fire(now time.Time, kind int) {
	r.chance[kind].due = false
	if r.salvo.open == 0 {
		r.salvo = salvo{kind: kind, begun: now, send: volley, open: volley}
	}
}

// sharp reports whether a volley would tell a background of 429s from a limit.
func (r *Rate) sharp() bool {
	return r.rate >= volley*r.cost && (r.lasted || r.ceiling >= atOnce*r.rate)
}

// volleyed reports whether an answer, a kind of refusal or kinds for none, is to a call of a volley.
func (r *Rate) volleyed(now, sent time.Time, kind int) bool {
	s := &r.salvo
	c := &r.chance[s.kind]
	if s.open > 0 && now.Sub(s.begun).Seconds() > PerStop { // too few calls to tell
		c.volleys, c.hits, s.send, s.open = 0, 0, 0, 0
	}
	if s.open == 0 || !sent.After(s.begun) || sent.After(s.ended) {
		return false
	}
	if s.kind == kind {
		c.hits++
	}
	if s.kind == kind && kind == unable {
		c.count()
	}
	if s.open--; s.open == 0 {
		c.judge(r, now, s.kind)
	}
	return true
}

// judge decides after a volley.
func (c *chance) judge(r *Rate, now time.Time, kind int) {
	c.volleys++
	few := c.hits <= mostHits && 2*c.hits <= volley*c.volleys
	if few && c.volleys < enough {
		c.due = kind == unable // a further event brings the next one of 429s
		return
	}
	if !few {
		*c = chance{until: c.until, fell: c.fell}
		return
	}
	seen := tally{calls: c.calls, refused: c.refused}
	if kind == tooMany { // it may be no background after all
		seen.refused = min(seen.refused, seen.calls*float64(c.hits+1)/float64(c.volleys*volley))
	}
	r.chanced(now, kind, seen)
	if kind == unable {
		r.imposed[unable] = imposed{begin: now, found: r.rate, seen: seen}
	}
}

// believe begins a belief in a large share. Refusals have cut the rate.
func (r *Rate) believe(now time.Time, kind int, seen tally) {
	i := &r.imposed[kind]
	switch {
	case kind == unable:
	case r.stopped > 0: // calls were few because of stops
		r.chance[kind].fell = math.Sqrt(i.before.called * i.before.rate)
	default:
		r.chance[kind].fell = i.before.called
	}
	*i = imposed{begin: now, found: r.rate, seen: seen, before: i.before}
	r.chanced(now, kind, seen)
}

// chanced begins a background's share, and brings the rate back from which it has fallen.
func (r *Rate) chanced(now time.Time, kind int, seen tally) {
	c := &r.chance[kind]
	*c = chance{share: seen.share(), budget: mostBudget, until: now.Add(remembered), fell: c.fell}
	switch {
	case kind == tooMany:
		r.recall(now, c.fell)
	case r.limited > 0:
		r.recall(now, r.limited)
	default:
		r.searching = r.rate < r.ceiling
	}
}
