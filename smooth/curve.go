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
	Line *Line
	// Cost is the price where it is no line: what it costs, in nanoseconds, to take
	// permits out of a store that holds stored of them (0 < take <= stored).
	Cost func(stored, take float64) float64
	// Full says how a limiter comes out of a time without a limit: with a full
	// store (a bursty one, which has been idle) or with an empty one (a warming-up
	// one, which has been busy).
	Full bool
	// AtRate returns the same curve at another rate.
	AtRate func(permitsPerSecond float64) *Curve
}

// Interval returns the time between two permits at the given rate, in nanoseconds.
func Interval(permitsPerSecond float64) float64 { return 1e9 / permitsPerSecond }

// unlimited reports whether permits cost nothing at all.
func (c *Curve) unlimited() bool { return c.Interval == 0 }

// price returns how many of the wanted permits come out of a store that holds
// stored of them, and what all of them cost in nanoseconds.
func (c *Curve) price(stored, wanted float64) (taken, cost float64) {
	if c.unlimited() {
		return 0, 0
	}
	taken = wanted
	if wanted > stored {
		taken = stored
		cost = float64((wanted - stored) * c.Interval)
	}
	if taken > 0 {
		switch {
		case c.Line != nil:
			cost += c.Line.Cost(stored, taken)
		case c.Cost != nil:
			cost += c.Cost(stored, taken)
		}
	}
	return taken, cost
}

// Free reports whether stored permits cost nothing.
func (c *Curve) Free() bool { return c.Line == nil && c.Cost == nil }

// unlimitedStore is what the store holds while there is no limit, and right after.
func (c *Curve) unlimitedStore() float64 {
	if c.Full {
		return c.Capacity
	}
	return 0
}

// whole splits a time into whole nanoseconds and the rest. Go's own conversion of
// a float64 that is too large (or NaN) to int64 is undefined; this one saturates.
func whole(nanoseconds float64) (int64, float64) {
	if nanoseconds < math.MaxInt64 { // false for NaN
		n := int64(nanoseconds)
		return n, nanoseconds - float64(n)
	}
	return math.MaxInt64, 0
}

// later returns t + d, or the largest time if that is beyond it. d is not negative.
func later(t, d int64) int64 {
	if sum := t + d; sum >= t {
		return sum
	}
	return math.MaxInt64
}
