package adapt

import (
	"math"
	"time"
)

const (
	doubling = 0.3 // seconds, in a search
	overdue  = 3.  // periods without an event: the limit has moved
	brief    = 0.1 // of a period: between events after a search
)

// growth is the state between two events.
type growth struct {
	searching bool
	last      time.Time // update
	grown     float64   // seconds of use since the last event
	speed     float64   // of the logarithm of the rate, per second
}

// pass returns the seconds since the last update; 0 if less than half of the rate was used.
func (r *Rate) pass(now time.Time) float64 {
	passed := max(0, now.Sub(r.last).Seconds())
	r.last = now
	if answered := r.answered.perSecond(now); answered > 0 && 2*answered < r.used {
		return 0
	}
	return min(passed, max(0.25, few*r.cost/r.rate))
}

func (r *Rate) grow(now time.Time) {
	passed := r.pass(now)
	if !r.proven || passed == 0 { // no call after the cut is answered yet
		return
	}
	r.grown += passed
	if r.rate >= r.ceiling {
		return
	}
	r.speed = r.pace(now, passed)
	rate := r.rate * math.Exp(r.speed*passed)
	// Idle programs and slow servers give no reason to grow above twice what is answered.
	if answered := r.answered.perSecond(now); answered > 0 {
		rate = max(r.rate, min(rate, 2*answered))
	}
	if r.rate = r.limit(rate); r.rate >= r.ceiling {
		r.searching = false
	}
}

// pace returns the growth of the rate's logarithm per second.
func (r *Rate) pace(now time.Time, passed float64) float64 {
	second := max(1, r.cost/r.rate) // slow calls take longer to show anything
	if r.searching {
		return math.Ln2 / (doubling * second)
	}
	expected := r.period()
	speed := r.step / expected
	if r.guesses > 0 {
		expected *= brief
	}
	if r.penalty <= PerStop { // slow calls do not wait for hours
		expected = min(expected, 1/leastRate)
	}
	if late := r.grown/expected - overdue; late > 0 {
		speed = min(speed*math.Exp2(late), math.Ln2/second)
	}
	return max(speed, r.approach(now, passed)/second)
}
