package pace

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/variant"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("pace")

// NewBursty returns a limiter that saves up permits while it is idle, one second's worth by default, and hands those
// out at once: Guava's SmoothBursty.
//
// At 5/s, after 3 s of idleness, 5 permits are stored. A sixth request goes at once too, and owes one permit. The
// seventh waits 200 ms for that, whatever its size.
//
// It returns a *[reserve.ValueError] for a rate that is not positive (+Inf is no limit), and a *[reserve.OptionError]
// for an option other than [WithBurst], [WithCapacity], [WithStored], [PayUpfront], [WithMaxWait], [WithClock],
// [reserve.WithName] and [reserve.WithSlack].
func NewBursty(permitsPerSecond float64, opts ...reserve.Option) (*reserve.Limiter, error) {
	p, err := Bursty(permitsPerSecond, opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

// Bursty returns the policy of NewBursty's limiters, for many keys or a shared limiter, with NewBursty's errors.
func Bursty(permitsPerSecond float64, opts ...reserve.Option) (*reserve.Policy, error) {
	s := store{burst: time.Second}
	return variant.Variant{
		Package: "pace", Limiter: "a bursty limiter", Settings: &s, Curve: s.curve,
	}.Policy(permitsPerSecond, opts...)
}

// NewTokenBucket returns a classic token bucket: full at the start, and a request waits for its own permits. As long as
// nothing is given back, its times are those of golang.org/x/time/rate's NewLimiter(permitsPerSecond, capacity). A
// request for more than the capacity, which that limiter refuses, waits.
//
// At 10/s with a capacity of 5, Reserve(3) is ready at once, and Reserve(4), right after it, in 200 ms. With a capacity
// below 1, TryAcquire always fails.
//
// Requests that reserve an estimate need a capacity of at least the largest one: at 1000/s, 16 workers that reserve 500
// and settle at 250 use 997 permits a second with a capacity of 500, and 500 with one of 250.
//
// It is NewBursty(permitsPerSecond, WithCapacity(capacity), [WithStored](capacity), [PayUpfront]()) with NewBursty's
// errors. A capacity that takes more than 146 years to fill is a *[reserve.ValueError].
func NewTokenBucket(permitsPerSecond, capacity float64, opts ...reserve.Option) (*reserve.Limiter, error) {
	p, err := TokenBucket(permitsPerSecond, capacity, opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

// TokenBucket returns the policy of NewTokenBucket's limiters, with NewTokenBucket's errors.
func TokenBucket(permitsPerSecond, capacity float64, opts ...reserve.Option) (*reserve.Policy, error) {
	if !(capacity >= 0 && capacity <= math.MaxFloat64) {
		return nil, valueError("capacity", capacity, "0 or more permits, and a finite number")
	}
	if permitsPerSecond > 0 && capacity/permitsPerSecond > longestFill {
		return nil, valueError("capacity", capacity, "what the rate fills in 146 years at most")
	}
	classic := []reserve.Option{WithCapacity(capacity), reserve.WithStored(capacity), reserve.PayUpfront()}
	return Bursty(permitsPerSecond, append(classic, opts...)...)
}

// store is what a bursty limiter can save up: a time's permits, or a number.
type store struct {
	burst    time.Duration
	capacity float64
	fixed    bool
	chosen   bool
}

func (s *store) set(to store, option string, value any) error {
	if s.chosen {
		return valueError(option, value, "WithBurst or WithCapacity once, and neither for a token bucket")
	}
	*s, s.chosen = to, true
	return nil
}

// WithBurst sets the idle time whose permits are saved up. At 10/s, WithBurst(500*time.Millisecond) saves up to 5
// permits. Default: 1 s, as in Guava. 0 saves nothing: no two requests for one permit are closer than the interval.
func WithBurst(d time.Duration) reserve.Option {
	return variant.Option("WithBurst", func(s *store) error {
		if d < 0 || d > 0 && d < time.Microsecond { // as of WithBurst(5), which means 5 ns
			return valueError("WithBurst", d, "0, or at least a microsecond, as in 5*time.Second")
		}
		return s.set(store{burst: d}, "WithBurst", d)
	})
}

// WithCapacity sets how many permits can be saved up, at any rate. WithBurst beside it is an error, and
// [NewTokenBucket] takes neither. 0 saves nothing.
func WithCapacity(permits float64) reserve.Option {
	return variant.Option("WithCapacity", func(s *store) error {
		if !(permits >= 0 && permits <= math.MaxFloat64) {
			return valueError("WithCapacity", permits, "0 or more permits, and a finite number")
		}
		return s.set(store{capacity: permits, fixed: true}, "WithCapacity", permits)
	})
}

func (s *store) curve(permitsPerSecond float64) *smooth.Curve {
	c := &smooth.Curve{
		Rate:     permitsPerSecond,
		Capacity: s.capacity,
		Interval: smooth.Interval(permitsPerSecond),
		Refill:   permitsPerSecond / 1e9,
		Fixed:    s.fixed,
		AtRate:   s.curve,
	}
	switch {
	case s.fixed || s.burst == 0: // also where the rate is infinite
	case c.Interval == 0:
		c.Capacity = math.Inf(1)
	default:
		c.Capacity = min(permitsPerSecond*s.burst.Seconds(), math.MaxFloat64)
	}
	if c.Interval == 0 {
		c.Refill = 0 // without limit the store is always full
	}
	return c
}

// longestFill is 2^62 ns in seconds. A bucket that takes longer to fill could not value what is given back.
const longestFill = (1 << 62) / 1e9
