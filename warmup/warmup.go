// Package warmup is for servers with cold caches, and for pools that open connections as needed. Its limiter begins
// slowly and reaches its rate after a warm-up period. It is a port of Guava's SmoothWarmingUp.
//
// An idle limiter is cold: its first permit takes coldFactor times longer, and later permits less and less. At 2/s with
// a period of 4 s, eight callers in a row wait for 0, 1.38, 1.13, 0.88, 0.63, 0.5, 0.5 and 0.5 s.
//
// # The curve
//
// The store is the cold: full after an idle time, empty under load. The more permits are stored, the longer each takes:
//
//	interval
//	  cold ^                  /
//	       |                /
//	       |              /    the area under the line between two numbers of
//	       |            /      stored permits is the time that taking them costs
//	stable +----------/
//	       |          |       |
//	       +----------+-------+--> stored permits
//	       0      threshold  capacity
//
// The area right of the threshold is the warm-up period, and left of it half the period. Idleness stores permits so
// that after a period, from any state and for every cold factor, the limiter is fully cold. Guava's SmoothRateLimiter
// derives it.
package warmup

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/variant"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("warmup")

// New returns a limiter that warms up. It is cold at first, and after an idle time of a period. At 100/s with a period
// of 10 s, a cold limiter begins at 33/s and reaches 100/s after 10 s. From warm, up to 5 s without a request cost
// nothing. After 7.5 s it begins at half its rate. A rate of +Inf is no limit; coming back from it the limiter is warm.
//
// It returns a *[reserve.ValueError] for a rate that is not positive or a period below a microsecond, and a
// *[reserve.OptionError] for an option other than [WithColdFactor], [reserve.WithStored], [reserve.PayUpfront],
// [reserve.WithMaxWait], [reserve.WithClock], [reserve.WithName] and [reserve.WithSlack].
func New(permitsPerSecond float64, period time.Duration, opts ...reserve.Option) (*reserve.Limiter, error) {
	p, err := Policy(permitsPerSecond, period, opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

// Policy returns the policy of New's limiters, for many keys or a shared limiter, with New's errors.
func Policy(permitsPerSecond float64, period time.Duration, opts ...reserve.Option) (*reserve.Policy, error) {
	if period < time.Microsecond { // as of New(10, 60), which means 60 ns
		return nil, valueError("period", period, "at least a microsecond, as in 10*time.Second")
	}
	w := warming{period: float64(period), coldFactor: 3}
	return variant.Variant{
		Package: "warmup", Limiter: "a warming-up limiter", Settings: &w, Curve: w.curve, Stored: math.Inf(1),
	}.Policy(permitsPerSecond, opts...)
}

// WithColdFactor sets how many times longer a permit takes in a cold limiter. At least 1, which is no warm-up. Default:
// 3, as in Guava.
func WithColdFactor(f float64) reserve.Option {
	return variant.Option("WithColdFactor", func(w *warming) error {
		if !(f >= 1 && f <= math.MaxFloat64) {
			return valueError("WithColdFactor", f, "a number of at least 1")
		}
		w.coldFactor = f
		return nil
	})
}

type warming struct {
	period     float64 // nanoseconds
	coldFactor float64
}

func (w *warming) curve(permitsPerSecond float64) *smooth.Curve {
	stable := smooth.Interval(permitsPerSecond)
	c := &smooth.Curve{Rate: permitsPerSecond, Interval: stable, AtRate: w.curve}
	threshold := 0.5 * w.period / stable
	above := 2 * w.period / (stable * (1 + w.coldFactor)) // permits between threshold and capacity
	if threshold+above > math.MaxFloat64 {                // no limit, or as good as none: the limiter is warm
		c.Interval = 0
		return c
	}
	c.Capacity = threshold + above
	c.Refill = c.Capacity / w.period
	c.Line = &smooth.LinearPrice{Base: stable, Threshold: threshold, Slope: stable * (w.coldFactor - 1) / above}
	return c
}
