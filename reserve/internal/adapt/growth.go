package adapt

import (
	"math"
	"time"
)

const (
	doubling = 0.3 // seconds, in a search
	overdue  = 3.  // periods without an event: the limit has moved
	guessing = 0.1 // of a period: after a search the next event is expected so soon
	paced    = 4.  // calls: time passes no faster than so many
)

// growth is the way on which a rate grows.
type growth struct {
	searching bool
	last      time.Time // until when time has passed
	grown     float64   // seconds of use since the last event
	speed     float64   // of the logarithm of the rate, per second
}

// pass returns the seconds that have passed, if the rate was used.
func (r *Rate) pass(now time.Time) float64 {
	passed := max(0, now.Sub(r.last).Seconds())
	r.last = now
	if answered := r.answered.perSecond(now); answered > 0 && 2*answered < r.used {
		return 0
	}
	return min(passed, max(0.25, paced*r.cost/r.rate))
}

// grow brings the rate up to date.
func (r *Rate) grow(now time.Time) {
	passed := r.pass(now)
	if r.happened() && !r.proven { // what was sent before a cut says nothing of the rate after it
		return
	}
	r.grown += passed
	if r.rate >= r.ceiling || r.rate > (1+step)*r.offered {
		return
	}
	r.speed = r.pace(passed)
	rate := r.rate * math.Exp(r.speed*passed)
	// No higher than twice what is answered: not on behalf of calls that are not made, nor to a server that gets slow.
	if answered := r.answered.perSecond(now); answered > 0 {
		rate = max(r.rate, min(rate, 2*answered))
	}
	if r.rate = r.limit(rate); r.rate >= r.ceiling {
		r.searching = false
	}
	if r.rate >= r.recall {
		r.recall = 0
	}
}

// pace returns how fast the rate grows: by a step in a period. Once an event is overdue, that doubles for each
// further period, up to a doubling of the rate each second.
func (r *Rate) pace(passed float64) float64 {
	second := max(1, r.cost/r.rate) // at slow calls a second has too few of them to see anything
	if r.searching {
		return math.Ln2 / (doubling * second)
	}
	expected := r.period()
	speed := step / expected
	if r.guesses > 0 {
		expected *= guessing
	}
	if late := r.grown/expected - overdue; late > 0 {
		speed = min(speed*math.Exp2(min(late, 20)), math.Ln2/second)
	}
	if r.recall > 0 && r.grown > r.wait/2 {
		speed = max(speed, math.Log(r.recall/r.rate)/max(r.wait-r.grown, passed))
	}
	return speed
}
