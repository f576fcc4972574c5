package model

import "math"

// Curve is what permits cost at one rate, spelled out: no two variants share a formula.
type Curve struct {
	Capacity float64 // permits
	Interval float64 // nanoseconds for a fresh permit
	Refill   float64 // permits that a nanosecond of idleness earns
	// Price is the cost, in nanoseconds, of the next bit of a permit out of a store that holds x.
	Price func(x float64) float64
	// Bend is where the price, a line on either side, has its corner.
	Bend float64
}

// Cost is the area under the price between stored-take and stored.
func (c Curve) Cost(stored, take float64) float64 {
	area := func(from, to float64) float64 { // of a stretch without a corner
		if to <= from {
			return 0
		}
		return (to - from) * c.Price((from+to)/2)
	}
	low := stored - take
	return area(low, math.Min(stored, math.Max(low, c.Bend))) + area(math.Max(low, math.Min(c.Bend, stored)), stored)
}

// Bursty is the curve of a limiter that saves up so many seconds.
func Bursty(seconds float64) func(rate float64) Curve {
	return func(rate float64) Curve { return free(rate, rate*seconds) }
}

// Capacity is the curve of a limiter that saves up so many permits.
func Capacity(permits float64) func(rate float64) Curve {
	return func(rate float64) Curve { return free(rate, permits) }
}

func free(rate, capacity float64) Curve {
	return Curve{
		Capacity: capacity,
		Interval: 1e9 / rate,
		Refill:   rate / 1e9,
		Price:    func(float64) float64 { return 0 },
	}
}

// WarmUp is the curve that Guava's SmoothRateLimiter draws; the period is in nanoseconds.
func WarmUp(period, coldFactor float64) func(rate float64) Curve {
	return func(rate float64) Curve {
		interval := 1e9 / rate
		bend := period / interval / 2
		capacity := bend + 2*period/(interval+coldFactor*interval)
		return Curve{
			Capacity: capacity,
			Interval: interval,
			Refill:   capacity / period,
			Bend:     bend,
			Price: func(x float64) float64 {
				if x <= bend {
					return interval
				}
				return interval + (coldFactor*interval-interval)*(x-bend)/(capacity-bend)
			},
		}
	}
}
