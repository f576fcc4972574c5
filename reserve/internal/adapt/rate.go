// Package adapt finds the rate that a server accepts, from which calls it accepts and which it refuses. It
// is arithmetic only: no clock, no lock, nothing of HTTP.
//
// # How
//
// A refusal cuts the rate, once for all refusals of the same event. Then the rate grows back, quickly at
// first, to the estimate of what is accepted, stays there, and rises beyond it, ever faster: another refusal
// says that the estimate was right, and it is made for twice as long then. If the rate
// gets 10 % above the last that was refused, the limit has moved: the rate doubles every second until the
// next refusal.
//
// The estimate is what was accepted since the last refusal, over the time that this took: at both ends a token
// bucket is empty, so that is its rate. Where that is not known, because too little was sent, or because a stop filled the
// bucket meanwhile, it is a share of the rate that was refused.
//
// If no rate is known (the ceiling is +Inf) one call goes alone, as a probe. If the server does not say a rate in
// reply, the rate starts at 16 calls a second and doubles every 0.3 s until a refusal.
//
// All is in permits: a call may cost many. Numbers of calls are multiplied by the mean cost.
package adapt

import (
	"math"
	"time"
)

// A Rate is the rate that is found for one limit. It comes from [New].
type Rate struct {
	ceiling float64 // never above
	rate    float64 // now; +Inf: not known
	offered float64 // what the server said it allows, less the margin; +Inf: nothing
	heard   time.Time

	phase    phase
	grown    float64 // seconds of use since the phase began
	used     time.Time
	low      float64 // the rate when the phase began
	estimate float64 // of what is accepted
	refused  float64 // the last rate that was refused
	period   float64 // seconds from a cut to where the rate is 10 % above the estimate

	cut      time.Time // when the last refusal that counted came
	proven   bool      // a call that was sent after the cut was accepted
	row      int       // refusals since the cut, while nothing was
	good     float64   // what was accepted when the rate was right for long
	goodAt   time.Time
	stopped  time.Duration // the stop that the last refusal brought
	reach    float64       // of the estimate, that the rate has at the end of the period
	accepted float64       // permits since the cut
	wasted   float64       // calls, by the last event
	fell     bool          // the limit has moved, and may move back

	sent, done meter
	cost       float64 // of a call, on average
}

// The phases of a rate.
type phase int

const (
	settled  phase = iota // nobody has been refused: at the ceiling, or as offered
	search                // no rate is known
	regrowth              // after a cut
)

// What a refusal leaves of the rate, and of the estimate.
type share struct{ rate, estimate float64 }

var (
	// Of a rate that was doubling: a bucket hides for a while that it is too high. And of a ceiling that nothing has
	// proven yet, which is a search, too.
	overshot = share{0.4, 0.42}
	unproven = share{0.6, 0.618}
	followed = share{0.6, 0.66}
	// The same where a refusal brings no stop, so that it is cheap to be wrong.
	overshotCheaply = share{0.65, 0.78}
	followedCheaply = share{0.6, 0.7}
	steepCheaply    = share{0.8, 0.9}

	steep  = share{0.7, 0.82}  // of a rate that had not reached the estimate
	gentle = share{0.93, 0.97} // of one that had
	warned = share{0.9, 0.97}  // where nobody was refused
)

const (
	firstRate  = 16.              // calls per second
	leastRate  = 0.5              // calls per second
	doubling   = 0.3              // seconds, in the search
	following  = 1.               // seconds, of a limit that has moved
	above      = 1.1              // of the estimate: beyond it, the limit has moved
	farther    = 1.3              // the same, where the estimate is only a guess
	soonest    = 3.               // seconds: the shortest period
	latest     = 30.              // the longest one
	perStop    = 25.              // a period has at least so many times the stop that another refusal would bring
	moved      = 0.75             // of what was accepted lately: what is less was a move
	eager      = 30 * time.Second // so long after a move, one back is looked for soon
	margin     = 0.98
	least      = 0.02             // changes of the rate that are smaller are not made
	patience   = 10 * time.Second // so long after a cut nothing need be accepted
	remembered = 10 * time.Minute // what a server said counts for so long
	proof      = 2.               // seconds of use at the ceiling that prove it
	tolerated  = 0.01             // of the calls may be refused because a higher rate is tried
	inARow     = 3                // refusals, with nothing accepted: the rate is halved until something is
)

// New returns a rate that is at its ceiling, in permits per second; +Inf: not known.
func New(ceiling float64) Rate {
	return Rate{ceiling: ceiling, rate: ceiling, offered: math.Inf(1), refused: math.Inf(1), period: soonest, cost: 1}
}

// Now returns the rate, in permits per second; +Inf if it is not known.
func (r *Rate) Now() float64 { return r.rate }

// Ceiling returns the rate that is never exceeded.
func (r *Rate) Ceiling() float64 { return r.ceiling }

// Unknown reports whether no rate is known yet, so that a probe is needed.
func (r *Rate) Unknown() bool { return math.IsInf(r.rate, 1) }

// Cost returns what a call costs on average.
func (r *Rate) Cost() float64 { return r.cost }

// Sent takes note of a call that goes out now.
func (r *Rate) Sent(now time.Time, permits float64) {
	if r.sent.total == 0 {
		r.cost = permits
	}
	r.cost += (permits - r.cost) / 16
	r.sent.add(now, permits)
}

// Said takes note of the rate that the server says it allows, in the response to a call
// sent at the given time, which counts only if it is the latest. A lower
// rate holds at once, a higher one too, unless a refusal has shown that it is too much.
func (r *Rate) Said(now, sent time.Time, rate float64) {
	if sent.Before(r.heard) {
		return
	}
	r.heard = sent
	r.offered = rate * margin
	if r.phase == search {
		r.phase = settled
	}
	r.grow()
}

// Accepted takes note of a call, sent at the given time, that the server did not refuse.
func (r *Rate) Accepted(now, sent time.Time, permits float64) {
	r.done.add(now, permits)
	if sent.After(r.cut) {
		r.accepted += permits
		if r.row >= inARow && !r.proven {
			r.rate, r.sent, r.done = max(r.rate, r.low), meter{}, meter{}
		}
		r.proven = true
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
	if r.use(now); r.phase != regrowth || r.proven { // what was sent before a cut says nothing of the rate after it
		r.grow()
	}
}

// use lets the time pass by which the rate grows: that in which it was used.
func (r *Rate) use(now time.Time) {
	passed := now.Sub(r.used).Seconds()
	if r.used.IsZero() {
		passed = 0
	}
	r.used = now
	if perSecond, known := r.sent.perSecond(now); known && 2*perSecond < r.rate {
		return
	}
	r.grown += min(max(0, passed), max(0.25, 4*r.cost/r.rate))
}

// Refused takes note of a call, sent at the given time, that the server refused, and that nothing
// goes until resume, if that is later than now. It reports whether the rate was cut: not for calls that were sent before the
// last cut, nor for those that follow it before anything was accepted: of those, every third halves the rate until something is.
func (r *Rate) Refused(now, sent, resume time.Time) bool {
	if !r.cut.IsZero() && !sent.After(r.cut) {
		r.waste()
		return false
	}
	if !r.cut.IsZero() && !r.proven && now.Sub(r.cut) < patience {
		r.waste()
		if r.row++; r.row%inARow == 0 {
			r.rate = r.limit(r.rate / 2)
		}
		return false
	}
	rate := r.rate
	if r.Unknown() {
		rate = firstRate * r.cost
	}
	stop, before := max(0, resume.Sub(now).Seconds()), r.period
	leave := r.leaves(now, stop > 0)
	if perSecond, known := r.sent.perSecond(now); known && (r.phase != search || perSecond < rate/2) {
		rate = min(rate, max(perSecond, rate/3))
	}
	r.period = max(soonest, perStop*stop)
	if r.fell = rate*leave.rate < moved*r.good && now.Sub(r.goodAt) < eager; r.fell {
		r.period = soonest
	} else if leave == gentle {
		r.period = max(r.period, min(2*before, latest))
	}
	accepted, measured := r.measured(now)
	lasted := accepted
	if r.phase == settled {
		lasted = rate
	}
	if (r.phase == settled && leave == steep || measured && now.Sub(r.cut)-r.stopped > time.Second) &&
		(lasted >= moved*r.good || now.Sub(r.goodAt) >= eager) {
		r.good, r.goodAt = lasted, now
	}
	r.refused = rate
	if r.reach = above; r.phase == search || leave == unproven {
		r.reach = farther
	}
	r.estimate = rate * leave.estimate
	low := rate * leave.rate
	if measured && accepted > r.estimate { // a bucket allows at least what it has allowed
		r.estimate = min(accepted, rate*gentle.estimate)
		low = max(low, r.estimate*0.96)
	}
	if stop > 0 { // the bucket fills up meanwhile
		low = max(low, r.estimate*gentle.estimate)
	}
	r.begin(regrowth, r.limit(low))
	r.rate = r.low
	r.stopped = max(0, resume.Sub(now))
	r.cut, r.proven, r.row, r.accepted, r.used = now, false, 0, 0, now.Add(r.stopped)
	r.sent.skip(r.stopped)
	r.done.skip(r.stopped)
	r.wasted = 0
	r.waste()
	return true
}

// waste counts a refused call of an event. The next event will probably waste as many, so it is not risked before they are a hundredth
// of all calls: at 50/s, with 4 of them, for 8 s. A limit that has moved, and may move back, is worth more.
func (r *Rate) waste() {
	if r.wasted++; !r.fell {
		r.period = max(r.period, min(r.wasted/tolerated*r.cost/r.estimate, latest))
	}
}

// leaves returns what a refusal leaves.
func (r *Rate) leaves(now time.Time, stops bool) share {
	switch {
	case r.phase == search && stops:
		return overshot
	case r.phase == search:
		return overshotCheaply
	case r.phase == settled && r.rate == r.offered && !r.Unknown():
		return gentle // the server has said this rate; its bucket was empty
	case r.Unknown(), r.phase == settled && r.grown < proof && math.IsInf(r.offered, 1):
		if stops {
			return unproven
		}
		return overshotCheaply
	case r.phase == regrowth && r.rate > above*r.estimate:
		if stops {
			return followed
		}
		return followedCheaply
	case r.phase == regrowth && r.grown > r.period/2:
		return gentle
	case r.phase == regrowth:
		return r.lasted(now.Sub(r.cut.Add(r.stopped)).Seconds(), stops)
	default:
		return steep
	}
}

// lasted returns what a refusal leaves of a rate that lasted for so many seconds: the longer, the smaller the excess by
// which it emptied the bucket. If that was full after a stop, and holds d seconds' worth, the share is 1 / (1 + d/t).
func (r *Rate) lasted(t float64, stops bool) share {
	low := share{1 / (1 + 0.4/t), 1 / (1 + 0.25/t)}
	least := share{0.4, 0.5}
	if !stops {
		low, least = share{1 - 0.4/t, 1 - 0.25/t}, steepCheaply
	}
	return share{min(max(low.rate, least.rate), gentle.rate), min(max(low.estimate, least.estimate), gentle.estimate)}
}

// measured returns what was accepted per second since the last refusal. At both ends a bucket is empty, so it allows at least
// that; and no more, unless it was full in between. If there was a stop, it filled up then, somewhat: half of the
// stop counts.
func (r *Rate) measured(now time.Time) (perSecond float64, ok bool) {
	since := r.cut.Add(r.stopped / 2)
	d := now.Sub(since).Seconds()
	return r.accepted / d, !r.cut.IsZero() && r.accepted >= 8*r.cost && d > 0.5+r.stopped.Seconds()
}

// Short takes note of a server that has nothing left for a moment, without having refused the call that
// was sent at the given time: the rate is a little too high. It counts once in 2 s.
func (r *Rate) Short(now, sent time.Time, permits float64) {
	switch {
	case r.Unknown():
		r.Accepted(now, sent, permits)
	case now.Sub(r.cut) >= 2*time.Second && sent.After(r.cut):
		r.refused, r.reach = r.rate, above
		r.estimate = r.rate * warned.estimate
		r.begin(regrowth, r.limit(r.rate*warned.rate))
		r.rate = r.low
		r.cut, r.proven, r.stopped, r.accepted, r.used = now, true, 0, 0, now
	default:
		r.Accepted(now, sent, permits)
	}
}

func (r *Rate) begin(p phase, low float64) { r.phase, r.low, r.grown = p, low, 0 }

// grow brings the rate up to date.
func (r *Rate) grow() {
	rate := r.limit(r.aim())
	if rate > r.rate && r.phase != settled { // not on behalf of calls that nobody makes, or that a server that is slower and slower has not done
		for _, m := range []*meter{&r.sent, &r.done} {
			if perSecond, known := m.perSecond(r.used); known {
				rate = max(r.rate, min(rate, 2*perSecond))
			}
		}
	}
	if rate == r.limit(math.Inf(1)) || math.Abs(rate-r.rate) >= least*r.rate {
		r.rate = rate
	}
}

// aim returns the rate that the phase wants now.
func (r *Rate) aim() float64 {
	switch r.phase {
	case search:
		return r.low * math.Exp2(r.grown/doubling)
	case regrowth:
		half := r.period / 2
		switch x := r.grown / half; {
		case x < 1:
			return r.estimate - float64((r.estimate-r.low)*math.Pow(1-x, 3))
		case x < 2:
			return r.estimate * (1 + float64((r.reach-1)*math.Pow(x-1, 3)))
		default:
			return r.estimate * r.reach * math.Exp2(math.Pow((r.grown-r.period)/following, 1.5))
		}
	default:
		return math.Inf(1)
	}
}

// limit keeps a rate between the least one and what is allowed.
func (r *Rate) limit(rate float64) float64 {
	return min(max(rate, leastRate*r.cost), r.offered, r.ceiling)
}
