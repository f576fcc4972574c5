package smooth

import (
	"math"
	"sort"
)

// A Curve is what permits cost at a rate. It is immutable, and safe for concurrent use.
type Curve struct {
	Rate float64
	// Capacity is the largest number of permits that can be stored.
	Capacity float64
	// Interval is the cost of a fresh permit in nanoseconds, 1e9/Rate.
	Interval float64
	// Refill is the number of permits that a nanosecond of idleness stores.
	Refill float64
	// Line is the price of stored permits; nil: they are free.
	Line *LinearPrice
	// Fixed says that the capacity is a number of permits, and not a time's: see [Ledger.SetRate].
	Fixed bool
	// AtRate returns the same curve at another rate.
	AtRate func(permitsPerSecond float64) *Curve

	extra int64 // the part of a permit that Upfront adds to the capacity, in nanoseconds
}

func Interval(permitsPerSecond float64) float64 { return min(1e9/permitsPerSecond, math.MaxFloat64) }

func (c *Curve) Free() bool { return c.Line == nil }

// Price returns how many of the wanted permits come out of a store that holds stored, and the cost of all in
// nanoseconds. At 10/s, with 3 stored for free, 5 cost 200 ms.
func (c *Curve) Price(stored, wanted float64) (taken, cost float64) {
	if c.unlimited() {
		return 0, 0
	}
	taken = wanted
	if wanted > stored {
		taken = stored
		cost = float64((wanted - stored) * c.Interval)
	}
	if c.Line != nil && taken > 0 {
		cost += c.Line.cost(stored, taken)
	}
	return taken, cost
}

// Upfront returns the curve for requests that wait for their own permits: a capacity that is a time's is at least one
// permit, or none could be granted without a wait.
func (c *Curve) Upfront() *Curve {
	up := *c
	if c.Free() && !c.Fixed && !c.unlimited() {
		up.Capacity = max(1, c.Capacity)
		up.extra = roundDown((up.Capacity - c.Capacity) * c.Interval)
	}
	up.AtRate = func(permitsPerSecond float64) *Curve { return c.AtRate(permitsPerSecond).Upfront() }
	return &up
}

// Ahead is what a request that pays upfront need not wait for, where stored permits lie beside the bucket and have a
// price: a permit of the coldest limiter. (Of other limiters, the bucket holds that.)
func (c *Curve) Ahead() int64 {
	if c.Free() || c.unlimited() {
		return 0
	}
	return c.cold()
}

// AtOnce returns how many permits, paid upfront, may be ready without a wait, however long nobody asks. Where stored
// permits have a price, that are fewer the more are stored.
func (c *Curve) AtOnce(stored float64) int {
	switch {
	case c.unlimited():
		return math.MaxInt
	case c.Free():
		return int(min(math.MaxInt64/2, c.Capacity+1e-9))
	}
	ahead := c.Ahead()
	fresh := int(float64(ahead) / c.Interval)
	return sort.Search(fresh, func(before int) bool {
		_, cost := c.Price(stored, float64(before+1))
		return roundUp(cost) > ahead
	})
}

func (c *Curve) cold() int64 {
	_, cost := c.Price(c.Capacity, 1)
	return roundUp(cost)
}

func (c *Curve) unlimited() bool { return c.Interval == 0 }

// span is 0 if permits lie beside the bucket: those with a price, or with 146 years to fill.
func (c *Curve) span() int64 {
	switch time := c.Capacity * c.Interval; {
	case !c.Free() || time >= 1<<62:
		return 0
	case c.unlimited():
		return 1 << 62
	default:
		return roundUp(time)
	}
}

// A LinearPrice of stored permits is Base up to Threshold, then Slope more for each permit.
//
// With a Base of 500 ms, a Threshold of 4 and a Slope of 250 ms, the sixth stored permit costs 875 ms, the area under
// the line between 5 and 6.
type LinearPrice struct {
	Base      float64 // nanoseconds
	Threshold float64 // permits
	Slope     float64 // nanoseconds per permit
}

func (l *LinearPrice) cost(stored, take float64) float64 {
	cost := float64(l.Base * take)
	if over := stored - l.Threshold; over > 0 { // plus a triangle, or a trapezium
		dear := take
		if dear > over {
			dear = over
		}
		cost += float64(l.Slope * dear * (over - dear*0.5))
	}
	return cost
}
