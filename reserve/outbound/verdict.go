package outbound

import (
	"cmp"
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
	crowded    bool          // the refusal's reason is a limit on calls in flight
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
	outcome outcome
	stop    time.Duration // of all calls; 0: none
	pause   time.Duration // for a rate that is found; 0 with PauseRefused
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

// decide returns what follows for the call, and makes the ruling of each charge.
func (r *rules) decide(s *reply.Reply, of charges, a tries) verdict {
	v := verdict{refused: s.Refused, refusals: a.refusals}
	switch {
	case s.Cached:
	case s.Refused:
		r.refusal(s, of, a, &v)
	default:
		r.acceptance(of)
	}
	return v
}

// acceptance stops limits with nothing left.
func (r *rules) acceptance(of charges) {
	for a := range of.all {
		ruling := &a.ruling
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

func (r *rules) refusal(s *reply.Reply, of charges, a tries, v *verdict) {
	wanted, own := of.stay(s)
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
	notRate := a.crowded || s.NotRate
	alone := notRate || r.pauseRefused && a.block == 0 || of.byChance(s)
	if alone && v.stop > 0 {
		v.resume = v.stop
	}
	v.again = wanted <= most && r.mayRepeat(s, wanted, a)
	if notRate {
		return
	}
	ruled := ruling{blamed: true}
	if !alone {
		ruled.stop = v.stop
	}
	switch {
	case r.pauseRefused && a.block == 0:
	case own:
		ruled.pause = wanted
	default:
		ruled.pause = min(s.After, r.maxRetryAfter)
	}
	of.blame(s, ruled)
}

// blame gives the ruling to the charges that a refusal is about.
func (cs charges) blame(s *reply.Reply, ruled ruling) {
	for a := range cs.all {
		if !cs.blamed(a, s) {
			continue
		}
		a.ruling = ruled
		if !a.named { // else the call was not paced by it
			a.ruling.outcome = refused
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

func (cs charges) byChance(s *reply.Reply) bool {
	return cs.find(func(a *charge) bool { return !a.chance && cs.blamed(a, s) }) == nil
}

// unclear reports whether a refused request may have been carried out: after a proxy's 503 without a time.
func unclear(s *reply.Reply, wanted time.Duration) bool {
	return s.Status == http.StatusServiceUnavailable && wanted == 0
}

// stay returns the server's wait: its own, its limits', or else (own) the Penalty of the blamed limits, or a Sign's.
func (cs charges) stay(s *reply.Reply) (d time.Duration, own bool) {
	if s.Told && s.After > 0 {
		return s.After, false
	}
	if d = cs.wants(); !s.Told && d > 0 {
		return d, false
	}
	d = s.Penalty
	for a := range cs.all {
		if cs.blamed(a, s) {
			d = max(d, a.limit.penalty)
		}
	}
	return d, d > 0
}

// wants returns for how long the limits' headers want no other call.
func (cs charges) wants() (d time.Duration) {
	for a := range cs.all {
		if a.said != nil && !a.limit.exact {
			d = max(d, a.said.Stop, a.said.Wants(float64(a.Permits)))
		}
	}
	return d
}

// blamed reports whether a limit caused a refusal: the limit for all calls if it concerns all; else limits with too
// little left; else the target.
func (cs charges) blamed(a *charge, s *reply.Reply) bool {
	if s.Whole && cs.named(s.Reason) == nil {
		if whole := cs.whole(); whole != nil {
			return a == whole
		}
	}
	if cs.find((*charge).exhausted) != nil {
		return a.exhausted()
	}
	return a == cs.target("", s.Reason)
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

func (a *charge) exhausted() bool {
	l := a.said
	return l != nil && (l.Stop > 0 || l.Short || l.Left >= 0 && l.Left < float64(a.Permits))
}

// target returns the charge that the server means by a name or a reason; nil: none.
func (cs charges) target(name, reason string) *charge {
	name = cmp.Or(name, reason)
	if a := cs.named(name); a != nil {
		return a
	}
	if name == reason { // unknown, or none
		name = ""
	}
	if name != "" && name != "requests" {
		return nil
	}
	near := cs // a part's limits come after those for all requests
	if first := slices.IndexFunc(cs, func(a charge) bool { return a.ofPart() }); first > 0 {
		near = cs[first:]
	}
	if a := near.last(func(a *charge) bool { return a.limit.name == "" }); a != nil {
		return a
	}
	if a := cs.last((*charge).ofPart); a != nil || name != "" {
		return a
	}
	return cs.last(func(*charge) bool { return true })
}
