package reserve

import (
	"math"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/internal/option"
)

// A Policy is a variant, a rate and options, checked once. It is immutable, and safe to share between goroutines and
// between limiters.
//
// Policies come from pace.Bursty, pace.TokenBucket, warmup.Policy, window.Policy and calendar.Policy.
type Policy engine.Policy

func (p *Policy) engine() *engine.Policy { return (*engine.Policy)(p) }

// An Option changes one setting of a policy. Packages with limiters of their own have further options. An option that
// does not fit a limiter is an [OptionError].
type Option option.Option

// WithClock replaces the clock, for tests. Only its methods Now, Since and NewTimer are used. Clocks are compared with
// ==. Contexts' deadlines are times of this clock. Nil is a *[ValueError]. Default: the real, monotonic clock.
func WithClock(c clockwork.Clock) Option {
	return Option(option.New("WithClock", func(s *option.Common) error {
		if isnil.Value(c) {
			return valueError("WithClock", nil, "a clock")
		}
		s.Clock = engine.On(c)
		return nil
	}))
}

// WithMaxWait sets the longest wait that the limiter promises. A request that would wait longer returns a *[WaitError].
// Negative counts as 0. Default: [Forever].
func WithMaxWait(d time.Duration) Option {
	return Option(option.New("WithMaxWait", func(s *option.Common) error {
		s.MaxWait = max(0, d)
		return nil
	}))
}

// WithName names the limit: "5 a second". A *[WaitError] of its limiters has the name in Limit, wherever they stand.
// Default: no name.
func WithName(name string) Option {
	return Option(option.New("WithName", func(s *option.Common) error {
		s.Name = name
		return nil
	}))
}

// WithSlack lets callers of Acquire and Wait wake late, by less than d, so that callers due close together wake
// together. At 5,000/s, callers take 1.7 to 3.4 times the processor time of golang.org/x/time/rate, and with
// WithSlack(time.Millisecond) 1.1 to 1.5 times; five callers then go each millisecond. The promised times and the rate
// stay. Limiters with the same d wake their callers at the same moments.
//
// On a fake clock (see [WithClock]) it has no effect. A negative d is a *[ValueError]. Default: 0; callers wake within
// tens of microseconds.
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

// PayUpfront makes a request wait for its own permits, as in a classic token bucket (pace.NewTokenBucket). By default
// the next request waits for them. At 1/s with nothing stored, Reserve(8) is ready after 8 s instead of now.
//
// A capacity that is a time, pace.WithBurst's or a warm-up's, then holds at least one permit: at 20 a minute a permit
// can be taken without a wait after 3 s, and of a cold limiter that warms up after an idle time.
func PayUpfront() Option {
	return Option(option.New("PayUpfront", func(s *option.Paying) error {
		s.Upfront = true
		return nil
	}))
}

// Limiter returns a new limiter of this policy.
func (p *Policy) Limiter() *Limiter { return (*Limiter)(p.engine().Limiter()) }

// Per returns permits per second: Per(5000, time.Hour) is 5000 permits an hour, 1.388…/s. If d is not positive it
// returns NaN, which no limiter accepts. Per(5, 60) is 5 permits in 60 ns: package pacevet finds that.
func Per(permits float64, d time.Duration) float64 {
	if d <= 0 {
		return math.NaN()
	}
	return permits / d.Seconds()
}

// Must returns v, and panics if err is not nil: for a limiter whose rate and options are constants.
//
//	var limiter = reserve.Must(pace.NewBursty(10))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
