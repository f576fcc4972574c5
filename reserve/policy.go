package reserve

import (
	"math"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/internal/option"
)

// A Policy is a variant, a rate and options, checked once: see pace.Bursty, pace.TokenBucket, warmup.Policy,
// window.Policy and calendar.Policy. It is immutable.
type Policy engine.Policy

func (p *Policy) engine() *engine.Policy { return (*engine.Policy)(p) }

// An Option changes one setting of a policy. An option that does not fit a limiter is an [OptionError].
type Option option.Option

// WithClock replaces the clock, for tests. The limiter uses only Now, Since and NewTimer, and compares clocks with ==.
// Contexts' deadlines are times of this clock. Nil is a *[ValueError]. Default: the real, monotonic clock.
func WithClock(c clockwork.Clock) Option {
	return Option(option.New("WithClock", func(s *option.Common) error {
		if isnil.Value(c) {
			return valueError("WithClock", nil, "a clock")
		}
		s.Clock = engine.On(c)
		return nil
	}))
}

// WithMaxWait sets the longest wait that the limiter promises. Negative counts as 0. Default: [Forever].
func WithMaxWait(d time.Duration) Option {
	return Option(option.New("WithMaxWait", func(s *option.Common) error {
		s.MaxWait = max(0, d)
		return nil
	}))
}

// WithName names the limit: "5 a second". A *[WaitError] has it in Limit. Default: no name.
func WithName(name string) Option {
	return Option(option.New("WithName", func(s *option.Common) error {
		s.Name = name
		return nil
	}))
}

// WithSlack lets callers of Acquire and Wait wake late, by less than d, so that callers due close together wake
// together, also of other limiters with the same d. At 5,000/s, callers take 1.7 to 3.4 times the processor time of
// golang.org/x/time/rate, and with WithSlack(time.Millisecond) 1.1 to 1.5 times. The promised times and the rate stay.
//
// It has no effect on a fake clock. A negative d is a *[ValueError]. Default: 0.
func WithSlack(d time.Duration) Option {
	return Option(option.New("WithSlack", func(s *option.Common) error {
		if d < 0 {
			return valueError("WithSlack", d, "0 or more")
		}
		s.Slack = d
		return nil
	}))
}

// WithStored sets how many permits are stored at the start, at most as many as fit: WithStored(math.Inf(1)) starts
// full. A negative number or NaN is a *[ValueError]. By default a bursty limiter starts empty, a token bucket full, and
// a warming-up limiter full (that is cold).
func WithStored(permits float64) Option {
	return Option(option.New("WithStored", func(s *option.Paying) error {
		if !(permits >= 0) {
			return valueError("WithStored", permits, "0 or more permits")
		}
		s.Stored = permits
		return nil
	}))
}

// PayUpfront makes a request wait for its own permits, as in a classic token bucket, instead of the next request. At
// 1/s with nothing stored, Reserve(8) is ready after 8 s instead of now.
//
// A capacity that is a time (pace.WithBurst, a warm-up) then holds at least one permit.
func PayUpfront() Option {
	return Option(option.New("PayUpfront", func(s *option.Paying) error {
		s.Upfront = true
		return nil
	}))
}

func (p *Policy) Limiter() *Limiter { return (*Limiter)(p.engine().Limiter()) }

// Per returns permits per second: Per(5000, time.Hour) is 1.388…. If d is not positive it returns NaN, which no limiter
// accepts.
func Per(permits float64, d time.Duration) float64 {
	if d <= 0 {
		return math.NaN()
	}
	return permits / d.Seconds()
}

// Must returns v, or panics if err is not nil: for constants, as in reserve.Must(pace.NewBursty(10)).
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
