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

	scale float64 // see worth; 0: 1
}

// worth returns what a nanosecond that was sold when the ledger was new is worth while it has
// this curve: changes of the rate may scale what comes back. Curves are made with 1.
func (c *Curve) worth() float64 {
	if c.scale == 0 {
		return 1
	}
	return c.scale
}

// worthy returns the same curve, of a ledger with that worth.
func (c *Curve) worthy(worth float64) *Curve {
	if worth == c.worth() {
		return c
	}
	same := *c
	same.scale = worth
	return &same
}

// Interval returns the time between two permits at the given rate, in nanoseconds; it is finite.
func Interval(permitsPerSecond float64) float64 { return min(1e9/permitsPerSecond, math.MaxFloat64) }

// unlimited reports whether permits cost nothing at all.
func (c *Curve) unlimited() bool { return c.Interval == 0 }

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

// sold returns what permits take out of the store at once, and how much time they are in the
// bucket: see [Ledger.amount].
func (c *Curve) sold(stored, wanted float64) (taken, time float64) {
	if c.Free() {
		return 0, min(float64(wanted*c.Interval), math.MaxFloat64)
	}
	taken, time = c.Price(stored, wanted)
	return taken, min(time, math.MaxFloat64)
}

// span returns how long fresh permits take in place of stored ones, where those are free: what they
// are in the bucket. (Those that have a price are paid for in time, so there they are nothing.)
func (c *Curve) span(stored float64) float64 {
	if c.Interval == 0 || !c.Free() {
		return 0
	}
	return min(float64(stored*c.Interval), math.MaxFloat64)
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
// Of a negative time all is the rest.
func whole(nanoseconds float64) (int64, float64) {
	if nanoseconds < 0 {
		return 0, nanoseconds
	}
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
