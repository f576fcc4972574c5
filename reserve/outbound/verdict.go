package outbound

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// This file only decides what follows from a response; a [lesson] does it.

type rules struct {
	retries       int
	maxRetryAfter time.Duration
	pauseRefused  bool
	repeatAny     bool // also requests that are not repeatable
}

// tries are a call's attempts so far, the last one refused or not.
type tries struct {
	number     int           // from 1
	refusals   int           // in a row, of those without a time
	block      time.Duration // for how long the key is blocked; 0: not
	others     int64         // calls in their own backoff
	crowded    string        // the refusing in-flight limit; "": none
	relieved   bool          // another call was accepted since this one began to wait
	repeatable bool
	torn       bool // there is no response: the server may have begun
}

// A verdict is what follows for the call.
type verdict struct {
	refused  bool
	after    time.Duration // the server's wanted time, or the backoff
	stop     time.Duration // the part of after that is obeyed; 0: the server did not say
	refusals int           // in a row, of those without a time
	again    bool
	resume   time.Duration // of the retry; 0: when it is its turn
}

// A ruling is what follows for a limit.
type ruling struct {
	blamed  bool
	owed    bool // what the limit owes is part of the stop
	each    bool // rate counts requests, whatever they cost
	outcome outcome
	stop    time.Duration // of all calls; 0: none
	pause   time.Duration // for a rate that is found; 0 with PauseRefused
	rate    float64       // allowed by the server, per second; 0: not told
}

type outcome uint8

const (
	nothing outcome = iota
	accepted
	refused
	short // nothing is left for a moment
)

const (
	// After a refusal without a time a request waits for firstBackoff, doubling unless others of its keys were
	// accepted. From the second on, waits are spread between half and all of that.
	firstBackoff = time.Second
	lastBackoff  = time.Minute
)

// decide returns what follows for the call, and for each charge in rulings.
func (r *rules) decide(s *reply.Reply, charges []charge, a tries, rulings []ruling) verdict {
	v := verdict{refused: s.Refused, refusals: a.refusals}
	switch {
	case s.Cached:
	case s.Refused:
		r.refusal(s, charges, a, &v, rulings)
	default:
		r.acceptance(charges, rulings)
	}
	for i := range charges {
		if a := &charges[i]; a.said != nil && a.said.Rate > 0 && !s.Cached && !a.tooLittle {
			rulings[i].rate, rulings[i].each = a.said.Rate, a.saidInCalls()
		}
	}
	return v
}

// acceptance stops limits with nothing left.
func (r *rules) acceptance(charges []charge, rulings []ruling) {
	for i := range charges {
		a, ruling := &charges[i], &rulings[i]
		ruling.outcome = accepted
		if a.said == nil {
			continue
		}
		if a.said.Short && a.said.Rate == 0 {
			ruling.outcome = short
		}
		if a.limit.exact {
			continue
		}
		ruling.stop = min(a.said.Stop, r.maxRetryAfter)
		if a.tooLittle {
			ruling.stop = min(a.said.Ends, r.maxRetryAfter)
		}
		if wait := a.said.Wants(float64(a.Permits)); a.said.Stop <= 0 && wait > 0 {
			ruling.stop, ruling.owed = min(wait, r.maxRetryAfter), true
		}
	}
}

func (r *rules) refusal(s *reply.Reply, charges []charge, a tries, v *verdict, rulings []ruling) {
	wanted, own := wants(s, charges)
	most := r.maxRetryAfter
	if own {
		most = wanted
	}
	switch {
	case wanted > 0:
		v.after, v.stop = wanted, min(wanted, most)
	case a.block > 0: // one call at a time
		v.after, v.stop = a.block, a.block
	default:
		v.backOff(a)
		if s.Empty {
			v.stop, v.resume = v.after, 0
		}
	}
	notRate := a.crowded != "" || s.NotRate
	alone := notRate || r.pauseRefused && a.block == 0 || byChance(charges, s)
	if alone && v.stop > 0 {
		v.resume = v.stop
	}
	v.again = wanted <= most && r.mayRepeat(s, wanted, a)
	if notRate {
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
	blame.lay(s, charges, rulings)
}

// lay makes a ruling each blamed limit's.
func (r ruling) lay(s *reply.Reply, charges []charge, rulings []ruling) {
	for i := range charges {
		if !blamed(charges, i, s) {
			continue
		}
		rulings[i] = r
		if !charges[i].named { // else the call was not paced by it
			rulings[i].outcome = refused
		}
	}
}

func (v *verdict) backOff(a tries) {
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

// golden spreads the fractions of its multiples evenly (Knuth, TAOCP 6.4, "Fibonacci hashing").
const golden = math.Phi

func (r *rules) mayRepeat(s *reply.Reply, wanted time.Duration, a tries) bool {
	return a.number <= r.retries && !s.Final &&
		(a.repeatable || r.repeatAny || !a.torn && !unclear(s, wanted))
}

func byChance(charges []charge, s *reply.Reply) bool {
	for i := range charges {
		if !charges[i].chance && blamed(charges, i, s) {
			return false
		}
	}
	return true
}

// unclear reports whether a refused request may have been carried out: after a proxy's 503 without a time.
func unclear(s *reply.Reply, wanted time.Duration) bool {
	return s.Status == http.StatusServiceUnavailable && wanted == 0
}

// wants returns the server's wait: its own, its limits', or else (own) the Penalty of the blamed limits, or a Sign's.
func wants(s *reply.Reply, charges []charge) (d time.Duration, own bool) {
	if s.Told && s.After > 0 {
		return s.After, false
	}
	if d = wantedBy(charges); !s.Told && d > 0 {
		return d, false
	}
	d = s.Penalty
	for i := range charges {
		if blamed(charges, i, s) {
			d = max(d, charges[i].limit.penalty)
		}
	}
	return d, d > 0
}

func wantedBy(charges []charge) (d time.Duration) {
	for i := range charges {
		if a := &charges[i]; a.said != nil && !a.limit.exact {
			d = max(d, a.said.Stop, a.said.Wants(float64(a.Permits)))
		}
	}
	return d
}

// blamed reports whether limit i caused a refusal: the limit for all calls if it concerns all; else limits with too
// little left; else the target.
func blamed(charges []charge, i int, s *reply.Reply) bool {
	if s.Whole && named(charges, s.Reason) < 0 {
		if w := wholeIn(charges); w >= 0 {
			return i == w
		}
	}
	if slices.ContainsFunc(charges, charge.exhausted) {
		return charges[i].exhausted()
	}
	return i == target(charges, "", s.Reason)
}

// tooLittleLeft reports whether less is left of a window than this call has cost, or a call costs on average. As a rate
// over the window's rest, that would delay the next call beyond its end.
func (a *charge) tooLittleLeft() bool {
	l := a.said
	if a.rate == nil || l == nil || l.Rate <= 0 || l.Bucket || l.Ends <= 0 {
		return false
	}
	return l.Left < 1 || !a.saidInCalls() && l.Left < max(float64(a.Permits), a.rate.cost())
}

// saidInCalls reports whether the server means calls, and not this limit's permits.
func (a *charge) saidInCalls() bool { return a.said.Name != a.limit.name || a.said.Name == "" }

func (a charge) exhausted() bool {
	l := a.said
	return l != nil && (l.Stop > 0 || l.Short || l.Left >= 0 && l.Left < float64(a.Permits))
}

func named(charges []charge, name string) int {
	return slices.IndexFunc(charges, func(a charge) bool { return a.limit.name == name && name != "" })
}

// target returns the charge that the server means by a name or a reason; -1: none.
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
	// A part's limits come after those for all requests.
	ofPart := func(a charge) bool { return a.limit.part != nil }
	first := max(0, slices.IndexFunc(charges, ofPart))
	if i := lastIndex(charges[first:], func(a charge) bool { return a.limit.name == "" }); i >= 0 {
		return first + i
	}
	if i := lastIndex(charges, ofPart); i >= 0 || name != "" {
		return i
	}
	return len(charges) - 1
}

func lastIndex(charges []charge, is func(charge) bool) int {
	for i := len(charges) - 1; i >= 0; i-- {
		if is(charges[i]) {
			return i
		}
	}
	return -1
}
