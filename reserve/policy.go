package reserve

import (
	"math"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/smooth"
)

// A Policy is a variant, a rate and options, checked once. It is immutable, and safe to share between goroutines and
// between limiters.
//
// Policies come from pace.Bursty, pace.TokenBucket, warmup.Policy, window.Policy and calendar.Policy.
type Policy engine.Policy

func (p *Policy) engine() *engine.Policy { return (*engine.Policy)(p) }

// common holds every limiter's options.
type common struct {
	clock   engine.Clock
	maxWait time.Duration
	slack   time.Duration
	name    string
}

// paying holds options of limiters that store permits.
type paying struct {
	stored  float64
	upfront bool
}

// An Option changes one setting of a policy. For a variant that it does not fit it is an [OptionError].
type Option struct {
	name string
	// set changes settings of the option's type, and reports whether they are.
	set func(setting any) (fits bool, err error)
}

// NewOption returns an option of that name ("WithBurst") for the variants whose settings are an S. It panics if the
// function is nil.
func NewOption[S any](name string, set func(*S) error) Option {
	if set == nil {
		panic(valueError("NewOption's function", nil, "a function"))
	}
	return Option{name: name, set: func(setting any) (bool, error) {
		s, ok := setting.(*S)
		if !ok {
			return false, nil
		}
		return true, set(s)
	}}
}

// WithClock replaces the clock, for tests. Only its methods Now, Since and NewTimer are used. Clocks are compared with
// ==. Contexts' deadlines are times of this clock. Nil is a *[ValueError]. Default: the real, monotonic clock.
func WithClock(c clockwork.Clock) Option {
	return NewOption("WithClock", func(s *common) error {
		if isnil.Value(c) {
			return valueError("WithClock", nil, "a clock")
		}
		s.clock = engine.On(c)
		return nil
	})
}

// WithMaxWait sets the longest wait that the limiter promises. A request that would wait longer returns a *[WaitError].
// Negative counts as 0. Default: [Forever].
func WithMaxWait(d time.Duration) Option {
	return NewOption("WithMaxWait", func(s *common) error {
		s.maxWait = max(0, d)
		return nil
	})
}

// WithName names the limit: "5 a second". A *[WaitError] of its limiters has the name in Limit, wherever they stand.
// Default: no name.
func WithName(name string) Option {
	return NewOption("WithName", func(s *common) error {
		s.name = name
		return nil
	})
}

// WithSlack lets callers of Acquire and Wait wake late, by less than d, so that callers due close together wake
// together. At 5,000/s, callers take 1.7 to 3.4 times the processor time of golang.org/x/time/rate, and with
// WithSlack(time.Millisecond) 1.1 to 1.5 times; five callers then go each millisecond. The promised times and the rate
// stay. Limiters with the same d wake their callers at the same moments.
//
// On a fake clock (see [WithClock]) it has no effect. A negative d is a *[ValueError]. Default: 0; callers wake within
// tens of microseconds.
func WithSlack(d time.Duration) Option {
	return NewOption("WithSlack", func(s *common) error {
		if d < 0 {
			return valueError("WithSlack", d, "0 or more")
		}
		s.slack = d
		return nil
	})
}

// WithStored sets how many permits are stored at the start, at most as many as fit: WithStored(math.Inf(1)) starts
// full. A negative number or NaN is a *[ValueError]. By default a bursty limiter starts empty, a token bucket full, and
// a warming-up limiter full (that is cold).
func WithStored(permits float64) Option {
	return NewOption("WithStored", func(s *paying) error {
		if !(permits >= 0) {
			return valueError("WithStored", permits, "0 or more permits")
		}
		s.stored = permits
		return nil
	})
}

// PayUpfront makes a request wait for its own permits, as in a classic token bucket (pace.NewTokenBucket). By default
// the next request waits for them. At 1/s with nothing stored, Reserve(8) is ready after 8 s instead of now.
//
// A capacity that is a time, pace.WithBurst's or a warm-up's, then holds at least one permit: at 20 a minute a permit can
// be taken without a wait after 3 s, and of a cold limiter that warms up after an idle time.
func PayUpfront() Option {
	return NewOption("PayUpfront", func(s *paying) error {
		s.upfront = true
		return nil
	})
}

// A Variant is a kind of limiter, with a Curve or a Ledger. The functions are called after all options have been
// applied.
type Variant struct {
	Package string // in errors: "warmup"
	Limiter string // in errors: "a warming-up limiter"; policies of the same are of one kind

	// Settings points to a struct that the variant's options change: see [NewOption].
	Settings any

	// Curve makes the curve at a rate, for package smooth's ledger. It starts with Stored permits unless [WithStored]
	// says otherwise, at most as many as fit.
	Curve  func(permitsPerSecond float64) *smooth.Curve
	Stored float64

	// Ledger makes the ledger of a limiter that begins now. Wall returns the wall clock at a time of the limiter's
	// clock. If it is a [Changer], it can be given another policy of this kind: see [Limiter.SetPolicy].
	Ledger func(now int64, wall func(now int64) time.Time) Ledger
	// Load makes a ledger of what AppendState had appended at the time then: see [Limiter.AppendBinary]. Terms are what
	// a Changer's AppendTerms had appended, perhaps of another policy, which the ledger has then; they are empty if the
	// ledger is no Changer. A nil state is a new ledger's. If Load is nil, the variant's limiters have no state to save.
	Load func(terms, state []byte, then int64, wall func(t int64) time.Time) (Ledger, error)

	// Recheck is how often the limiter looks again at times that follow the wall clock and so may become earlier.
	// Default: 0, never.
	Recheck time.Duration
	// StallIsPause: a time in which the whole program stood still, so that a caller wakes more than 1 ms late, is a
	// pause. Otherwise callers whose times passed meanwhile go at once.
	StallIsPause bool
}

// NewPolicy makes a policy of a variant. It returns a *[ValueError] for a rate that is not positive (+Inf: no limit),
// an *[OptionError] for an option that does not fit, and the options' own errors.
func NewPolicy(v Variant, permitsPerSecond float64, opts ...Option) (*Policy, error) {
	if err := checkRate(v.Package, permitsPerSecond); err != nil {
		return nil, err
	}
	if (v.Curve == nil) == (v.Ledger == nil) {
		return nil, &ValueError{Package: v.Package, Name: "Variant", Value: v.Limiter, Want: "either Curve or Ledger"}
	}
	general := common{maxWait: Forever}
	settings := []any{&general}
	if v.Settings != nil {
		settings = append(settings, v.Settings)
	}
	pay := paying{stored: v.Stored}
	if v.Curve != nil {
		settings = append(settings, &pay)
	}
	for _, opt := range opts {
		if err := opt.apply(v, settings); err != nil {
			return nil, err
		}
	}
	t := engine.Terms{
		Clock: general.clock.Begun(), MaxWait: general.maxWait, Stored: pay.stored, Upfront: pay.upfront,
		Slack: general.slack, Package: v.Package, Limiter: v.Limiter, New: v.Ledger, Load: v.Load,
		Recheck: v.Recheck, StallIsPause: v.StallIsPause, Errors: refusals{general.name}, Name: general.name,
	}
	if v.Curve != nil {
		if t.Curve = v.Curve(permitsPerSecond); pay.upfront {
			t.Curve = t.Curve.Upfront()
		}
	}
	return (*Policy)(engine.NewPolicy(t)), nil
}

// apply changes the first settings that fit.
func (o Option) apply(v Variant, settings []any) error {
	if o.set == nil {
		return &OptionError{Package: v.Package, Option: "the zero Option", Limiter: v.Limiter}
	}
	for _, s := range settings {
		if fits, err := o.set(s); fits || err != nil {
			return err
		}
	}
	return &OptionError{Package: v.Package, Option: o.name, Limiter: v.Limiter}
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
