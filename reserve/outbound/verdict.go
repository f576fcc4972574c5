package outbound

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// This file decides what follows from a response. It is pure: no limiter, no clock, no hook. [call.apply] does what it
// decides.

// rules are the options that a decision depends on.
type rules struct {
	retries       int
	maxRetryAfter time.Duration
	pauseRefused  bool
	repeatAny     bool // also requests that are not repeatable
}

// An attempt is what a decision needs to know of a call.
type attempt struct {
	number     int           // from 1
	refusals   int           // in a row, of those without a time
	block      time.Duration // the key is blocked: no call should go for so long; 0: it is not
	relieved   bool          // another call of these keys was accepted since this one began to wait
	others     int64         // calls that wait by themselves
	crowded    string        // the limit of requests in flight that it was refused for; "": none
	repeatable bool          // it does no harm to carry out the request twice
}

// A verdict is what follows from a response.
type verdict struct {
	refused  bool
	after    time.Duration // for how long the server wants no other attempt, or its backoff
	stop     time.Duration // for how long it is obeyed; 0: it did not say
	refusals int           // in a row, of those without a time
	again    bool          // the request may be sent again
	resume   time.Duration // not before this time; 0: when it is its turn, since its limit is stopped
	rulings  []ruling      // for each charge
}

// A ruling is what follows from a response for one limit.
type ruling struct {
	blamed bool          // the refusal is because of this limit
	stop   time.Duration // no call of the limit goes for so long; 0: it is not stopped
	owed   bool          // what the limit owes anyway counts as part of the stop
	lesson lesson
	pause  time.Duration // lesson: for how long the server wants no call, also if only this one waits; 0 with PauseRefused
	rate   float64       // what the server says that it allows, per second; 0: it does not say
	each   bool          // rate counts requests, whatever they cost
}

// A lesson is what an adaptive rate learns from a response.
type lesson int

const (
	nothing lesson = iota
	accepted
	refused
	short // nothing is left for a moment
)

const (
	// Without a word from the server, a request waits for so long after its first refusal, and twice as long after each
	// further one, unless others of its keys were accepted meanwhile. From the second refusal on requests that wait
	// together are spread between half of that and all of it.
	firstBackoff = time.Second
	lastBackoff  = time.Minute
)

// decide returns what follows from a response for a call with these charges.
func (r *rules) decide(s *reply.Reply, charges []charge, a attempt) verdict {
	v := verdict{refused: s.Refused, refusals: a.refusals, rulings: make([]ruling, len(charges))}
	switch {
	case s.Cached: // it says nothing, even if all is well
	case s.Refused:
		r.refusal(s, charges, a, &v)
	default:
		r.acceptance(s, charges, &v)
	}
	for i := range charges {
		if said := charges[i].said; said != nil && said.Rate > 0 && !s.Cached {
			v.rulings[i].rate, v.rulings[i].each = said.Rate, said.Name != charges[i].limit.name || said.Name == ""
		}
	}
	return v
}

// acceptance decides after a request that was accepted. Limits of which nothing is left stop, but not before a redirect
// is followed.
func (r *rules) acceptance(s *reply.Reply, charges []charge, v *verdict) {
	redirect := s.Status >= 300 && s.Status < 400
	for i := range charges {
		a, ruling := &charges[i], &v.rulings[i]
		ruling.lesson = accepted
		if a.said == nil {
			continue
		}
		if a.said.Short && a.said.Rate == 0 {
			ruling.lesson = short
		}
		if a.limit.exact || redirect {
			continue
		}
		ruling.stop = min(a.said.Stop, r.maxRetryAfter)
		if wait := a.said.Wants(float64(a.Permits)); a.said.Stop <= 0 && wait > 0 {
			ruling.stop, ruling.owed = min(wait, r.maxRetryAfter), true
		}
	}
}

func (r *rules) refusal(s *reply.Reply, charges []charge, a attempt, v *verdict) {
	wanted, own := wants(s, charges)
	most := r.maxRetryAfter
	if own {
		most = wanted
	}
	switch {
	case wanted > 0:
		v.after, v.stop = wanted, min(wanted, most)
	case a.block > 0: // one call at a time, whichever is the first
		v.after, v.stop = a.block, a.block
	default:
		v.backOff(a)
	}
	alone := a.crowded != "" || r.pauseRefused && a.block == 0 || byChance(charges, s) // there is nothing to stop but the call
	if alone && v.stop > 0 {
		v.resume = v.stop
	}
	v.again = wanted <= most && r.mayRepeat(s, wanted, a)
	if a.crowded != "" {
		return
	}
	blame := ruling{blamed: true}
	if !alone {
		blame.stop = v.stop
	}
	switch {
	case r.pauseRefused && a.block == 0:
	case own:
		blame.pause = wanted
	default:
		blame.pause = min(s.After, r.maxRetryAfter)
	}
	v.blame(blame, s, charges)
}

// blame puts a ruling on each limit that caused the refusal.
func (v *verdict) blame(r ruling, s *reply.Reply, charges []charge) {
	for i := range charges {
		if !blamed(charges, i, s) {
			continue
		}
		v.rulings[i] = r
		if !charges[i].named { // else the refusal says nothing of the limit's rate: the call did not keep to it
			v.rulings[i].lesson = refused
		}
	}
}

// backOff sets the call's own wait, longer after each refusal without a time.
func (v *verdict) backOff(a attempt) {
	if v.refusals++; a.relieved {
		v.refusals = 1
	}
	v.after = min(firstBackoff<<min(v.refusals-1, 6), lastBackoff)
	if v.refusals > 1 {
		_, part := math.Modf(float64(a.others) * golden)
		v.after -= time.Duration(part * float64(v.after/2))
	}
	v.resume = v.after
}

// golden is the golden ratio: the fractions of its multiples are spread evenly (Knuth, The Art of Computer Programming,
// 6.4, "Fibonacci hashing").
const golden = math.Phi

func (r *rules) mayRepeat(s *reply.Reply, wanted time.Duration, a attempt) bool {
	return a.number <= r.retries && !s.Final &&
		(a.repeatable || r.repeatAny || !unclear(s, wanted))
}

// byChance reports whether a refusal says nothing of the rate of any limit that it blames.
func byChance(charges []charge, s *reply.Reply) bool {
	for i := range charges {
		if !charges[i].chance && blamed(charges, i, s) {
			return false
		}
	}
	return true
}

// unclear reports whether a refused request may have been carried out: a proxy answers 503, without a time, also when
// the server has the request.
func unclear(s *reply.Reply, wanted time.Duration) bool {
	return s.Status == http.StatusServiceUnavailable && wanted == 0
}

// wants returns for how long no other call should go after a refusal: as the server says, or as it says of the limits,
// or else (own) for the Penalty of the limits that it blames.
func wants(s *reply.Reply, charges []charge) (d time.Duration, own bool) {
	if s.Told && s.After > 0 {
		return s.After, false
	}
	if d = wantedBy(charges); !s.Told && d > 0 {
		return d, false
	}
	for i := range charges {
		if blamed(charges, i, s) {
			d = max(d, charges[i].limit.penalty)
			own = own || charges[i].limit.penalty > 0
		}
	}
	if !own {
		return 0, false
	}
	return d, true
}

func wantedBy(charges []charge) (d time.Duration) {
	for i := range charges {
		if a := &charges[i]; a.said != nil && !a.limit.exact {
			d = max(d, a.said.Stop, a.said.Wants(float64(a.Permits)))
		}
	}
	return d
}

// blamed reports whether limit i caused a refusal: the limit for all calls, if the refusal concerns all; else the
// limits with too little left; if there are none, the target.
func blamed(charges []charge, i int, s *reply.Reply) bool {
	if s.Whole && named(charges, s.Reason) < 0 {
		if w := slices.IndexFunc(charges, func(a charge) bool { return a.limit.whole }); w >= 0 {
			return i == w
		}
	}
	any := false
	for j := range charges {
		any = any || charges[j].exhausted()
	}
	if any {
		return charges[i].exhausted()
	}
	return i == target(charges, "", s.Reason)
}

func (a *charge) exhausted() bool {
	l := a.said
	return l != nil && (l.Stop > 0 || l.Short || l.Left >= 0 && l.Left < float64(a.Permits))
}

func named(charges []charge, name string) int {
	return slices.IndexFunc(charges, func(a charge) bool { return a.limit.name == name && name != "" })
}

// target returns the index of the charge that the server means by a name, or by the reason of its refusal; -1: none.
func target(charges []charge, name, reason string) int {
	if name == "" && reason != "" {
		name = reason
	}
	if i := named(charges, name); i >= 0 {
		return i
	}
	if name == reason { // unknown, or none
		name = ""
	}
	if name != "" && name != "requests" {
		return -1
	}
	for i := len(charges) - 1; i >= 0; i-- {
		if charges[i].limit.name == "" {
			return i
		}
	}
	if name == "" {
		return len(charges) - 1
	}
	return -1
}
