package adapt

import (
	"cmp"
	"math"
	"time"
)

// A Rate finds a limit's rate, in permits per second. [New] makes it. It is not safe for concurrent use.
type Rate struct {
	ceiling float64 // the rate is never higher
	floor   float64 // the rate is never lower
	step    float64
	rate    float64 // by the law; +Inf: unknown
	used    float64 // the rate in steps of 1 %, less while nothing is accepted
	cost    float64 // permits per call, on average

	offered float64 // the rate that the server states, less the margin; +Inf: none
	rest    bool    // offered is what is left over the rest of a time
	heard   time.Time
	until   time.Time // offered holds
	fair    fair

	opening
	growth
	event
	cycle cycle
	memory
	imposed  [kinds]imposed
	answered meter
}

const (
	firstRate  = 16.              // calls per second, in a search
	leastRate  = 1. / 120         // calls per second
	leastBlind = 0.5              // calls per second, while nothing is accepted
	margin     = 0.98             // of a stated rate
	least      = 0.01             // of the rate: smaller changes are not made
	remembered = 10 * time.Minute // a stated rate, a right one, a share
)

// New returns a rate at its ceiling, in permits per second; +Inf means unknown.
func New(ceiling float64) Rate {
	return Rate{
		ceiling: ceiling, rate: ceiling, used: ceiling, offered: math.Inf(1), cost: 1, step: step, event: event{proven: true},
	}
}

// Known returns a rate that its user knows: its steps are smaller, and it is never lower by more than two.
func Known(rate float64) Rate {
	r := New(rate)
	r.step, r.grown = 1./PerStop, lasting
	r.floor = rate * math.Exp(-2*r.step)
	return r
}

// Now returns the rate, in permits per second, or +Inf if it is unknown.
func (r *Rate) Now() float64 { return r.used }

func (r *Rate) Ceiling() float64 { return r.ceiling }

// Probes reports whether one call must find out the rate.
func (r *Rate) Probes() bool { return !r.open && r.Unknown() }

// Unknown reports whether the rate is unknown.
func (r *Rate) Unknown() bool { return math.IsInf(r.used, 1) }

func (r *Rate) Cost() float64 { return r.cost }

// Sent counts a call that goes out now.
func (r *Rate) Sent(now time.Time, permits float64) {
	permits = max(permits, 1)
	if r.last.IsZero() {
		r.cost, r.last, r.begun = permits, now, now
	}
	r.cost += (permits - r.cost) / 16
}

// Said takes the rate that a server states in the response to a call sent then, if none was sent later. It holds at
// once, unless a refusal has shown that it is too high. If rest is not 0, it is what is left over the rest of a time,
// and if spread, that of a window, which a program that uses it alone may spend at once.
func (r *Rate) Said(now, sent time.Time, rate float64, rest time.Duration, spread bool) {
	if sent.Before(r.heard) || !(rate > 0) {
		return
	}
	r.heard, r.rest, r.until = sent, rest > 0, now.Add(cmp.Or(rest, remembered))
	share := r.fair.share()
	r.offered = rate * margin * share
	if rest > 0 { // one call goes until then, if there is one left
		r.offered = max(r.offered, min(rate, r.cost/rest.Seconds()))
	}
	switch {
	case spread && share == 1:
		r.offered = math.Inf(1)
	case r.searching || r.Unknown():
		r.searching, r.rate = false, r.ceiling
	}
	r.tell()
}

// Left takes the permits that a server states are left of a window, in the response to a call sent then. It shows which
// part other programs use. Call it before Said.
func (r *Rate) Left(sent time.Time, left float64) {
	if !sent.Before(r.heard) {
		r.fair.say(left, r.cost)
	}
}

// Accepted counts an accepted call, sent then.
func (r *Rate) Accepted(now, sent time.Time, permits float64) {
	r.answered.add(now, permits)
	if now.After(r.until) {
		r.offered = math.Inf(1)
	}
	if !r.open && math.IsInf(r.rate, 1) && math.IsInf(r.offered, 1) {
		r.search(now)
	}
	if sent.After(r.at) {
		if r.row > 0 {
			r.last = now
		}
		if r.served > 0 {
			r.resume(now)
		}
		if !r.proven {
			r.first = now
		}
		r.accepted += permits
		r.proven, r.row = true, 0
		for kind := range r.imposed {
			r.imposed[kind].spare(now, kind)
		}
	} else {
		r.cycle.accepted += permits
	}
	r.weigh(now, sent, tooMany, false)
	r.weigh(now, sent, unable, false)
	r.grow(now)
	r.tell()
}

// Refused counts a refused call, sent then; calls stop until resume, if that is later than now. notAble means 503 or
// 529, which may have nothing to do with the rate. Refused reports whether it cut the rate: not by chance, not in a
// row, and not for a call sent before the last cut.
func (r *Rate) Refused(now, sent, resume time.Time, notAble bool) (cut bool) {
	defer r.tell()
	r.answered.add(now, r.cost)
	stop, kind := max(0, resume.Sub(now)), kindOf(notAble)
	if now.Sub(r.limitedAt) > remembered {
		r.limited = 0
	}
	r.weigh(now, sent, tooMany, !notAble)
	r.weigh(now, sent, unable, notAble)
	switch {
	case !sent.After(r.at):
	case !r.proven:
		r.tolerated(kind)
		r.again(stop, notAble)
	case r.fair.others(), r.tolerated(kind):
	default:
		cut = true
		fell := r.tried(now)
		r.cut(now, sent, stop)
		if !notAble {
			r.limited, r.limitedAt = cmp.Or(fell, r.rate), now
		}
	}
	return cut
}

// Short counts an accepted call, sent then, after which the server states that nothing is left for a moment. It cuts
// the rate by a step, once in a tenth of a period.
func (r *Rate) Short(now, sent time.Time, permits float64) {
	if r.Unknown() || now.Sub(r.at).Seconds() < brief*r.period() || !sent.After(r.at) {
		r.Accepted(now, sent, permits)
		return
	}
	r.searching = false
	r.lower(now, min(r.rate, r.offered), r.step)
}

// Blocked counts the end of a block because of too many calls. It keeps a rate below that before the block for 50 times
// as long as the block lasted; not if the ceiling was accepted for long, which is forgiven once in 25 of such times.
func (r *Rate) Blocked(now time.Time, lasted time.Duration) {
	if pardoned := now.Sub(r.pardoned); pardoned >= 0 && pardoned <= 2*lasted {
		r.pardoned = now.Add(PerStop * lasted)
		return
	}
	if r.after < unproven*r.right { // others came
		return
	}
	if r.served > 0 {
		r.resume(now)
		r.tell()
		return
	}
	cut := 2 * r.step
	if r.guesses > 0 {
		cut = math.Ln2
	}
	r.retry, r.penalty = false, 2*PerStop*lasted.Seconds()
	r.lower(now, cmp.Or(r.after, r.rate), cut)
	r.right = min(r.right, r.rate)
}

// lower takes so much of a rate's logarithm, without a stop.
func (r *Rate) lower(now time.Time, rate, take float64) {
	r.rate = r.limit(rate * math.Exp(-take))
	r.begin(now, 0)
	r.proven, r.first = true, now
	r.tell()
}

func (r *Rate) limit(rate float64) float64 {
	return min(max(rate, leastRate*r.cost, r.floor), r.ceiling)
}

func (r *Rate) tell() {
	to := min(r.rate, r.offered)
	for i := range r.imposed {
		if dip := r.imposed[i].dip; dip > 0 {
			to = min(to, max(dip, r.floor, leastDip*r.cost))
		}
	}
	if r.row >= halving {
		to = min(to, max(math.Ldexp(to, -r.row/halving), leastBlind*r.cost))
	}
	if math.Abs(to-r.used) >= least*r.used || to == min(r.offered, r.ceiling) {
		r.used = to
	}
}
