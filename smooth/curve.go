package smooth

import "math"

// A Curve is what permits cost at one rate. It is immutable, and safe to share
// between ledgers and goroutines.
type Curve struct {
	// Rate is the number of fresh permits per second; +Inf means no limit.
	Rate float64
	// Capacity is the largest number of permits that can be stored.
	Capacity float64
	// Interval is the cost of a fresh permit in nanoseconds, 1e9/Rate; 0 means no limit.
	Interval float64
	// Refill is the number of permits that a nanosecond of idleness stores.
	Refill float64
	// Line is the price of stored permits; nil: they are free.
	Line *LinearPrice
	// AtRate returns the same curve at another rate.
	AtRate func(permitsPerSecond float64) *Curve
}

// Interval returns the time between two permits at the given rate, in nanoseconds; it is finite.
func Interval(permitsPerSecond float64) float64 { return min(1e9/permitsPerSecond, math.MaxFloat64) }

// Free reports whether stored permits cost nothing.
func (c *Curve) Free() bool { return c.Line == nil }

// Price returns how many of the wanted permits come out of a store that holds stored of them, and
// what all of them cost in nanoseconds. At 10/s, with 3 in a store where they are free, 5 cost
// 200 ms.
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

// unlimited reports whether permits cost nothing at all.
func (c *Curve) unlimited() bool { return c.Interval == 0 }

// unlimitedStore returns what the store holds while there is no limit, and right after: where stored permits are free
// all it can, like that of a limiter that has been idle; where they have a price, and make it slow, nothing.
func (c *Curve) unlimitedStore() float64 {
	if c.Free() {
		return c.Capacity
	}
	return 0
}

// span returns how many nanoseconds the bucket can hold: the stored permits, as time, where they are free. It is 0 if
// they have a price, and if it would take 146 years to save them up. Then they lie beside the bucket.
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

// A LinearPrice is the price of stored permits in numbers: up to Threshold each costs Base,
// and from there on the price rises in a straight line, by Slope for each permit
// more. It is numbers and no func, so that it can also be sent to where the arithmetic
// of a shared limiter is done, a Redis script.
//
// With a Base of 500 ms, a Threshold of 4 and a Slope of 250 ms, the sixth stored
// permit costs the area under the line between 5 and 6: 875 ms.
type LinearPrice struct {
	Base      float64 // nanoseconds
	Threshold float64 // permits
	Slope     float64 // nanoseconds per permit
}

// cost returns the cost, in nanoseconds, of taking permits out of a store that holds stored of them.
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
