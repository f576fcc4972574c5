package shared

import (
	"math"
	"sync/atomic"

	"github.com/nextfree/pace/smooth"
)

// A tab is what was granted without Redis, until Redis is told.
type tab struct {
	permits atomic.Int64
	last    atomic.Int64 // when the last of them were granted, on the limiter's clock
}

// owe notes permits that Redis does not know of, or, if n is negative, that were not used.
func (l *Limiter) owe(n int) {
	if n > 0 {
		l.owed.last.Store(l.now())
	}
	l.owed.add(int64(n))
}

// add adds to what is owed; saturated, and never below 0.
func (o *tab) add(n int64) {
	for n != 0 {
		was := o.permits.Load()
		now := max(0, was+n)
		if n > 0 && now < was {
			now = math.MaxInt64
		}
		if o.permits.CompareAndSwap(was, now) {
			return
		}
	}
}

// take empties the tab. It returns what is due, and all that was owed.
func (o *tab) take(now int64, c *smooth.Curve) (due int, all int64) {
	if o.permits.Load() == 0 {
		return 0, 0
	}
	all = o.permits.Swap(0)
	return o.charge(all, now, c), all
}

// due returns how many permits would be charged.
func (o *tab) due(now int64, c *smooth.Curve) int { return o.charge(o.permits.Load(), now, c) }

// charge returns how many of the permits are to be charged: at most a store of them, less what has
// flowed into a store since. At 10/s, with a store of 10, 25 permits are 10 at first, 4 after 0.6 s, and none after 1 s.
func (o *tab) charge(permits, now int64, c *smooth.Curve) int {
	if c.Interval == 0 { // there is no limit
		return 0
	}
	most := math.Floor(min(float64(permits), c.Capacity, 1<<53)) // all that a double can count
	return int(math.Ceil(max(0, most-float64(now-o.last.Load())*c.Refill)))
}
