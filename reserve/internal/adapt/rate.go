package adapt

import (
	"math"
	"time"
)

// A Rate is the rate that is found for one limit, in permits per second. It comes from [New].
type Rate struct {
	ceiling float64 // never above
	rate    float64 // what the law says; +Inf: not known
	used    float64 // the rate, in steps of 1 %, and less while nothing is accepted
	cost    float64 // of a call, on average

	// What the server says.
	offered float64 // the rate that it allows, less the margin; +Inf: it says nothing
	heard   time.Time
	fair    fair

	growth
	event
	memory
	chance   [kinds]chance
	answered meter
}

const (
	firstRate  = 16.              // calls per second, in a search
	leastRate  = 1. / 120         // calls per second
	leastBlind = 0.5              // calls per second, while nothing is accepted
	margin     = 0.98             // of the rate that a server says
	least      = 0.01             // changes of the rate that are smaller are not made
	remembered = 10 * time.Minute // what a server said, and a background, count for so long
)

// New returns a rate that is at its ceiling, in permits per second; +Inf: not known.
func New(ceiling float64) Rate {
	return Rate{ceiling: ceiling, rate: ceiling, used: ceiling, offered: math.Inf(1), cost: 1, event: event{blind: 1}}
}

// Now returns the rate, in permits per second; +Inf if it is not known.
func (r *Rate) Now() float64 { return r.used }

// Pace returns what the limiter is to be told: the rate, or that of a volley, for a few calls.
func (r *Rate) Pace() float64 {
	if r.chance[tooMany].send+r.chance[unable].send == 0 {
		return r.used
	}
	return min(atOnce*r.used, r.offered, r.ceiling)
}

// Ceiling returns the rate that is never exceeded.
func (r *Rate) Ceiling() float64 { return r.ceiling }

// Unknown reports whether no rate is known yet, so that a probe is needed.
func (r *Rate) Unknown() bool { return math.IsInf(r.used, 1) }

// Cost returns what a call costs on average.
func (r *Rate) Cost() float64 { return r.cost }

// Sent counts a call that goes out now.
func (r *Rate) Sent(now time.Time, permits float64) {
	if r.last.IsZero() {
		r.cost, r.last = permits, now
	}
	r.cost += (permits - r.cost) / 16
	for i := range r.chance {
		r.chance[i].sent(now)
	}
}

// Said is the rate that the server says it allows, in the response to a call
// sent at the given time. It counts only if that call is the latest. A lower
// rate holds at once, a higher one too, unless a refusal has shown that it is too much. If spread, the rate is what is
// left of a window, spread over the rest of it: a program that uses the window alone may spend it at once.
func (r *Rate) Said(now, sent time.Time, rate float64, spread bool) {
	if sent.Before(r.heard) {
		return
	}
	r.heard = sent
	share := r.fair.share()
	if spread && share == 1 {
		r.offered = math.Inf(1)
		r.tell()
		return
	}
	r.offered = rate * margin * share
	if r.searching || r.Unknown() {
		r.searching, r.rate = false, r.ceiling
	}
	r.tell()
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
	r.answered.add(now, permits)
	if now.Sub(r.heard) > remembered {
		r.offered = math.Inf(1) // a server need not repeat itself, but what it said once does not hold for good
	}
	if math.IsInf(r.rate, 1) && math.IsInf(r.offered, 1) {
		r.searching, r.rate, r.last = true, r.limit(firstRate*r.cost), now
	}
	if sent.After(r.at) {
		if r.row > 0 {
			r.last = now
		}
		r.accepted += permits
		r.proven, r.row, r.blind = true, 0, 1
		for i := range r.chance {
			r.chance[i].accepted(now)
		}
	}
	r.volleyed(now, sent, kinds)
	r.grow(now)
	r.tell()
}

// Refused counts a call, sent at the given time, that the server refused; nothing goes until resume, if
// that is later than now. notAble says that the server is not able to answer (503, 529), which may have
// nothing to do with the rate. Refused reports whether the rate was cut: not for a refusal by chance, for a call
// that was sent before the last cut, nor for one that follows it before anything was accepted.
func (r *Rate) Refused(now, sent, resume time.Time, notAble bool) bool {
	r.answered.add(now, r.cost)
	stop, kind := max(0, resume.Sub(now)), tooMany
	if notAble {
		kind = unable
	}
	switch {
	case r.volleyed(now, sent, kind):
		r.tell()
		return false
	case r.happened() && !sent.After(r.at):
		return false
	case r.happened() && !r.proven:
		r.again(stop, notAble)
		r.tell()
		return false
	case r.fair.others(), (kind == unable || stop == 0) && r.chance[kind].tolerated():
		return false
	default:
		r.cut(now, sent, stop)
		if notAble || stop == 0 { // after a stop a bucket has room, and a volley tells nothing
			r.suspect(now, kind)
		}
	}
	r.tell()
	return true
}

// Short counts a call, sent at the given time, in whose response the server says that nothing is left
// for a moment: the rate is a little too high. It counts once in 2 s.
func (r *Rate) Short(now, sent time.Time, permits float64) {
	if r.Unknown() || now.Sub(r.at) < 2*time.Second || !sent.After(r.at) {
		r.Accepted(now, sent, permits)
		return
	}
	r.searching = false
	r.rate = r.limit(min(r.rate, r.offered) * math.Exp(-step))
	r.begin(now, 0)
	r.proven = true
	r.tell()
}

// Blocked says that the server has refused everything for a time, without a word for how long, because
// there were too many calls. A rate below the one that led to it is kept for 50 times as long: each block costs a
// minute or more.
func (r *Rate) Blocked(now time.Time, lasted time.Duration) {
	cut := 2 * step
	if r.guesses > 0 {
		cut = math.Ln2
	}
	r.rate = r.limit(r.after * math.Exp(-cut))
	r.begin(now, 0)
	r.proven, r.blind, r.recall, r.penalty = true, 1, 0, 2*PerStop*lasted.Seconds()
	r.tell()
}

// limit keeps a rate between the least one and the ceiling.
func (r *Rate) limit(rate float64) float64 {
	return min(max(rate, leastRate*r.cost), r.ceiling)
}

// tell brings the rate that the limiter is told up to date.
func (r *Rate) tell() {
	to := min(r.rate, r.offered)
	if r.blind < 1 {
		to = min(to, max(to*r.blind, leastBlind*r.cost))
	}
	if r.Unknown() || math.Abs(to-r.used) >= least*r.used || to == min(r.offered, r.ceiling) {
		r.used = to
	}
}
