// Package adapt finds the rate that a server accepts, from which calls it accepts and which it refuses. It
// is arithmetic only: no clock, no lock, nothing of HTTP.
//
// # How
//
// A refusal cuts the rate, once for all refusals of the same event. Then the rate grows back to the
// estimate of what is accepted, quickly at first, stays there, and rises beyond it, ever faster.
// Another refusal says that the estimate was right, and the next attempt takes twice as long. If the
// rate gets 10 % above the estimate without a refusal, the limit has moved: the rate doubles every
// second until the next refusal.
//
// The estimate is what was accepted since the last refusal, over the time that this took: at both ends
// a token bucket is empty, so that is its rate. Where that is not known, because too little was sent,
// or because a stop filled the bucket meanwhile, it is a share of the rate that was refused.
//
// If no rate is known (the ceiling is +Inf) one call goes alone, as a probe. If the server does not
// say a rate in reply, the rate starts at 16 calls a second and doubles every 0.3 s until a refusal.
//
// # What a refusal proves
//
// Not every refusal depends on the rate. A server that refuses a share of all calls, at any rate, has
// a background: [Rate.Chance] reports such a refusal, and it neither cuts the rate nor stops the
// limit. See chance. Where such refusals have cut the rate far below what the server accepts, it climbs:
// see climb.
//
// A rate that was accepted at the ceiling for 10 s is not unlearned because of one refusal: after a
// stop of t it is back within min(t, 30 s). Only another refusal, within 30 s or 25 times the stop, is
// about the rate.
//
// Refusals while nothing is accepted at all say nothing of the rate: an outage, or a quota that is
// used up. They make the calls rarer, and the first acceptance brings the rate back.
//
// All is in permits: a call may cost many. Numbers of calls are multiplied by the mean cost.
//
// # Constants
//
// What each was tuned on, and what half and twice of it break: cells of internal/matrix.TestMatrix + situations of
// TestSituations, of 136 and 70, by more than their bounds (2 % for a situation). 0 + 0 breaks none of them: the value is not critical.
//
//	             tuned on                    half      twice
//	firstRate    unknown rates                4 +  7   10 +  8
//	leastRate    N5, 5 a minute               0 +  0    0 +  0
//	leastBlind   outages                      0 +  4    0 + 15
//	doubling     unknown rates                2 +  9    8 +  5
//	following    falls to a third; N14        3 +  9    0 + 12
//	soonest      token bucket, bare 429       6 + 14    6 + 10
//	latest       outages, stops               0 + 12    0 +  3
//	PerStop      token bucket, Retry-After    0 +  0    0 +  0
//	moved        falls to a third             6 +  8    4 + 19
//	remembered   TestForgets                  0 +  0    0 +  0
//	proof        sliding log                  2 +  1    0 +  0
//	lasting      TestPardon                   0 +  0    0 +  0
//	tolerated    token bucket, bare 429       1 +  6    0 + 11
//	inARow       outages                      6 +  3    1 + 18
//	paced        5/s                          0 +  2    0 +  0
//	large        N30                          0 +  6    0 +  6
//	alarm        token bucket; N30            0 + 12    8 + 29
//	unhurried    N30, 500/s                   0 +  3       ?
//
// Those of climb.go were tuned on N30 at 500/s, where no rate is known, against the bare 429 and sliding log at
// 50/s, N5, and two programs on a bucket (TestSharing). They are a balance: what climbs sooner takes more from
// a neighbour.
package adapt

import (
	"math"
	"time"
)

// A Rate is the rate that is found for one limit. It comes from [New].
type Rate struct {
	ceiling float64 // never above
	rate    float64 // now; +Inf: not known
	cost    float64 // of a call, on average

	// What the server says.
	offered float64 // the rate that it allows, less the margin; +Inf: it says nothing
	heard   time.Time
	fair    fair

	// How the rate grows.
	growth
	used   time.Time
	fell   bool    // the limit has moved, and may move back
	good   float64 // what was accepted when the rate was right for long
	goodAt time.Time

	// The last cut.
	cut      time.Time
	stopped  time.Duration // the stop that it brought
	proven   bool          // a call that was sent after it was accepted
	row      int           // refusals since, while nothing was accepted
	accepted float64       // permits since
	pardoned time.Time     // the last refusal of a rate that had lasted
	blocked  time.Time     // the end of the last block
	blocks   int           // close together

	// Refusals by chance.
	chance   chance
	best     record
	top      float64 // the rate when the latest run of cuts began
	searched bool    // that run began in a search
	ended    float64 // the rate when the last search ended
	climb    *climb  // nil: none

	sent, done meter
}

// growth is the way on which a rate grows.
type growth struct {
	phase    phase
	grown    float64 // seconds of use since the phase began
	low      float64 // the rate when the phase began
	estimate float64 // of what is accepted
	period   float64 // seconds from a cut to where the rate is 10 % above the estimate
	wasted   float64 // refused calls of the event that led to the last cut
}

// The phases of a rate.
type phase int

const (
	settled  phase = iota // nothing was refused: at the ceiling, or as offered
	search                // no rate is known
	regrowth              // after a cut
)

// PerStop is how many times as long as a stop another refusal is avoided.
const PerStop = 25

const (
	firstRate  = 16.              // calls per second
	leastRate  = 1. / 120         // calls per second
	leastBlind = 0.5              // calls per second, while nothing is accepted
	doubling   = 0.3              // seconds, in the search
	following  = 1.               // seconds, of a limit that has moved
	above      = 1.1              // of the estimate: beyond it, the limit has moved
	soonest    = 3.               // seconds: the shortest period
	latest     = 30.              // seconds: the longest one
	perStop    = float64(PerStop) // a period has so many times the stop that another refusal would bring
	moved      = 0.75             // of what was accepted lately: what is less was a move
	margin     = 0.98             // of the rate that a server says
	least      = 0.02             // changes of the rate that are smaller are not made
	remembered = 10 * time.Minute // what a server said counts for so long
	proof      = 2.               // seconds of use at the ceiling that prove it
	lasting    = 10.              // seconds of use at the ceiling, after which one refusal does not disprove it
	tolerated  = 0.01             // of the calls may be refused because a higher rate is tried
	inARow     = 3                // refusals, with nothing accepted: the rate is halved until something is
	paced      = 4.               // calls: time passes no faster than so many
	longStop   = 2 * time.Second  // longer stops tell how long a quota lasts
	window     = 90 * time.Second // stops longer than this do not
	lagging    = 1.25             // times the record: a rate that was growing may have been so much above it
	settling   = 10               // times its length: a block that comes later counts as the first one again
)

// afterBlocks is what the first block, the second and each further one leave of the estimate.
var afterBlocks = [...]float64{0.97, 0.8, 0.5}

// New returns a rate that is at its ceiling, in permits per second; +Inf: not known.
func New(ceiling float64) Rate {
	return Rate{
		ceiling: ceiling, rate: ceiling, offered: math.Inf(1), cost: 1,
		growth: growth{period: soonest},
		chance: chance{patience: patience, doubt: 1},
	}
}

// Now returns the rate, in permits per second; +Inf if it is not known.
func (r *Rate) Now() float64 { return r.rate }

// Ceiling returns the rate that is never exceeded.
func (r *Rate) Ceiling() float64 { return r.ceiling }

// Unknown reports whether no rate is known yet, so that a probe is needed.
func (r *Rate) Unknown() bool { return math.IsInf(r.rate, 1) }

// Cost returns what a call costs on average.
func (r *Rate) Cost() float64 { return r.cost }

// Sent counts a call that goes out now.
func (r *Rate) Sent(now time.Time, permits float64) {
	if r.sent.total == 0 {
		r.cost = permits
	}
	r.cost += (permits - r.cost) / 16
	r.sent.add(now, permits)
}

// Said is the rate that the server says it allows, in the response to a call
// sent at the given time. It counts only if that call is the latest. A lower
// rate holds at once, a higher one too, unless a refusal has shown that it is too much.
func (r *Rate) Said(now, sent time.Time, rate float64) {
	if sent.Before(r.heard) {
		return
	}
	r.heard = sent
	r.offered = rate * margin * r.fair.share()
	if r.abandon(); r.phase == search {
		r.phase = settled
	}
	r.grow()
}

// Left is what the server says is left of the quota of a window, in permits, in the response to a call
// sent at the given time. By that it is known which part of it other programs use. It must be told
// before Said.
func (r *Rate) Left(sent time.Time, left float64) {
	if !sent.Before(r.heard) {
		r.fair.say(left, r.cost)
	}
}

// Accepted counts a call, sent at the given time, that the server did not refuse.
func (r *Rate) Accepted(now, sent time.Time, permits float64) {
	r.done.add(now, permits)
	if !r.chance.trial.on {
		r.best.add(now, permits)
	}
	if sent.After(r.cut) {
		r.chance.accepted(r.slow())
		r.accepted += permits
		if r.row >= inARow && !r.proven {
			r.rate, r.sent, r.done = max(r.rate, r.low), meter{}, meter{}
		}
		r.proven = true
		r.climbed(now, sent)
		r.examine(now)
	}
	if !math.IsInf(r.offered, 1) && now.Sub(r.heard) > remembered {
		r.offered = math.Inf(1) // a server need not repeat itself, but what it said once does not hold for good
		if r.phase == settled && math.IsInf(r.ceiling, 1) {
			r.begin(search, r.limit(r.rate))
		}
	}
	if r.Unknown() && math.IsInf(r.offered, 1) {
		r.begin(search, firstRate*r.cost)
		r.rate = r.limit(r.low)
	}
	if r.chance.trial.on {
		return
	}
	if r.use(now); r.phase != regrowth || r.proven { // what was sent before a cut says nothing of the rate after it
		r.grow()
	}
}

// Refused counts a call, sent at the given time, that the server refused, and that nothing goes until
// resume, if that is later than now. It reports whether the rate was cut: not for a refusal by chance,
// for a call that was sent before the last cut, nor for one that follows it before anything was
// accepted. Of those, every third halves the rate until something is.
func (r *Rate) Refused(now, sent, resume time.Time) bool {
	switch {
	case !r.cut.IsZero() && !sent.After(r.cut):
		r.waste()
		return false
	case !r.cut.IsZero() && !r.proven:
		if r.row++; r.row <= inARow {
			r.waste()
		}
		if r.row%inARow == 0 {
			r.rate = min(r.rate, max(r.limit(r.rate/2), leastBlind*r.cost))
		}
		return false
	case r.fair.others():
		return false
	case !r.chance.refused(r.slow(), r.rate/r.cost) && r.attributable():
		r.examine(now)
		return false
	}
	if r.climb != nil {
		r.descend(now)
		return true
	}
	known := r.chance.known()
	if r.chance.trial.on {
		r.chance.end(now, 0)
	}
	r.chance.cut(r.phase == regrowth && r.grown < r.period/2)
	r.lower(now, resume, known)
	return true
}

// Chance reports whether a refusal of a call that was sent at the given time comes by chance, whatever
// the rate: then it stops only its own call. It must be asked before Refused.
func (r *Rate) Chance(sent time.Time) bool {
	switch {
	case !r.attributable() || !r.proven && !r.cut.IsZero():
		return false
	case r.chance.known():
		return true
	case !sent.After(r.cut):
		return false
	}
	c := r.chance
	return !c.refused(r.slow(), r.rate/r.cost)
}

// attributable reports whether a refusal may be one by chance: not in a search, which any refusal ends, unless
// the server is known to refuse by chance.
func (r *Rate) attributable() bool {
	return !r.Unknown() && (r.phase != search || r.chance.known())
}

// Short counts a call, sent at the given time, in whose response the server says that nothing is left
// for a moment: the rate is a little too high. It counts once in 2 s.
func (r *Rate) Short(now, sent time.Time, permits float64) {
	if r.Unknown() || now.Sub(r.cut) < 2*time.Second || !sent.After(r.cut) {
		r.Accepted(now, sent, permits)
		return
	}
	r.abandon()
	r.estimate = r.rate * warned.estimate
	r.begin(regrowth, r.limit(r.rate*warned.rate))
	r.rate = r.low
	r.cut, r.proven, r.stopped, r.accepted, r.used = now, true, 0, 0, now
}

// Blocked says that the server has refused everything for a time, without a word for how long, because
// there were too many calls. A rate a little below the one that led to it is kept for 50 times as
// long. If it leads to a block as well, a much lower one: each block costs a minute or more.
func (r *Rate) Blocked(now time.Time, lasted time.Duration) {
	before := max(r.low, r.top)
	r.top, r.searched = 0, false
	r.abandon()
	r.chance.end(now, r.chance.share) // its refusals were about the rate
	if now.Sub(r.blocked) > settling*lasted {
		r.blocks = 0
	}
	r.blocked = now
	accepted := r.low
	if best := r.best.rate; best > 0 {
		accepted = max(best, min(r.low, lagging*best))
	}
	r.estimate = max(min(before, accepted)*afterBlocks[min(r.blocks, len(afterBlocks)-1)], leastRate*r.cost)
	r.blocks++
	r.begin(regrowth, r.limit(r.estimate*gentle.estimate))
	r.rate, r.period = r.low, 2*PerStop*lasted.Seconds()
}

// limit keeps a rate between the least one and what is allowed.
func (r *Rate) limit(rate float64) float64 {
	return min(max(rate, leastRate*r.cost), r.offered, r.ceiling)
}
