package reserve

import (
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/smooth"
)

// A Policy is what is limited: a variant, a rate, options, checked once. It is
// immutable, and safe to share between goroutines and between limiters, each of
// which is a policy with a memory of its own.
//
// Policies come from pace.Bursty, warmup.Policy and window.Policy.
type Policy struct {
	ledger  func(now int64) Ledger
	terms   *Terms          // nil where the ledger is not smooth's
	clock   clockwork.Clock // nil: the real one
	epoch   time.Time       // the begin of the limiters' time
	maxWait time.Duration
}

// A Ledger is the arithmetic behind a [Limiter]: which stretch of the limiter's time a
// request gets, and how it is given back. What varies between limiters is this and
// nothing else. It need not be safe for concurrent use, and must not block: the
// limiter calls it under its lock.
//
// Times are nanoseconds on the limiter's clock, which never runs back.
//
// A ledger that can't grant every number of permits to one request has a method
// Max() int as well, always the same. It refuses what is larger, and the caller gets a *[SizeError].
// One whose limiters package keyed shall drop when they are like new has Idle(now int64) bool: that
// nothing it has sold is still to come or to be paid for, so that only what is stored matters.
type Ledger interface {
	// Reserve finds the time at which permits (at least 1) may be used and takes
	// them, unless that is after latest: then it returns false, takes nothing, and
	// the slot says only when they would have been ready.
	Reserve(now int64, permits int, latest int64) (smooth.Slot, bool)
	// Take takes permits (at least 1) if they may be used now.
	Take(now int64, permits int) bool
	// Charge takes permits (at least 1) that were used already.
	Charge(now int64, permits int)
	// Return takes back the last permits of a slot; due says that its time has come.
	Return(now int64, slot smooth.Slot, permits int, due bool)
	// Rate is in permits per second.
	Rate() float64
	// SetRate gets a positive number, which may be +Inf.
	SetRate(now int64, permitsPerSecond float64)
	// Stored returns the permits stored now, and changes nothing.
	Stored(now int64) float64
	// NextFree returns when a request for one permit would be ready, and changes nothing.
	NextFree(now int64) int64
}

// common holds the options that every limiter takes.
type common struct {
	clock   clockwork.Clock
	maxWait time.Duration
}

// paying holds the options of limiters that store permits and are paid in them.
type paying struct {
	stored  float64
	upfront bool
}

// An Option changes one setting of a policy. There is one type of option for every
// constructor; one that does not fit the variant is an error that says so.
type Option struct {
	name string
	// set changes the setting if it is of the option's type, and reports whether it is.
	set func(setting any) (fits bool, err error)
}

// NewOption returns an option of that name, "WithBurst" for one, for the variants
// whose settings are an S.
func NewOption[S any](name string, set func(*S) error) Option {
	return Option{name: name, set: func(setting any) (bool, error) {
		s, ok := setting.(*S)
		if !ok {
			return false, nil
		}
		return true, set(s)
	}}
}

// WithClock replaces the clock: for tests. Waits then use that clock's timers, and
// a context's deadline is read on it. Default: the real, monotonic clock.
func WithClock(c clockwork.Clock) Option {
	return NewOption("WithClock", func(s *common) error {
		if c == nil {
			return &ValueError{Package: "reserve", Name: "WithClock", Value: c, Want: "a clock"}
		}
		s.clock = c
		return nil
	})
}

// WithMaxWait sets the longest wait that any caller of the limiter is promised;
// a request that would take longer gets a *[WaitError]. Negative counts as 0.
// Default: [Forever].
func WithMaxWait(d time.Duration) Option {
	return NewOption("WithMaxWait", func(s *common) error {
		s.maxWait = max(0, d)
		return nil
	})
}

// WithStored sets how many permits are stored at the start, at most as many as
// fit: WithStored(math.Inf(1)) starts full. Default: none for a bursty limiter; a
// warming-up one starts full, that is cold.
func WithStored(permits float64) Option {
	return NewOption("WithStored", func(s *paying) error {
		if !(permits >= 0) {
			return &ValueError{Package: "reserve", Name: "WithStored", Value: permits, Want: "0 or more permits"}
		}
		s.stored = permits
		return nil
	})
}

// PayUpfront makes a request wait for its own cost, as in a classic token bucket,
// where by default it goes at once and the next one waits. At 1/s, Reserve(8) on a
// limiter without stored permits is ready after 8 s, instead of now.
//
// With pace.WithCapacity(b) and WithStored(b) the promised times are those of
// golang.org/x/time/rate's NewLimiter(rate, b).
func PayUpfront() Option {
	return NewOption("PayUpfront", func(s *paying) error {
		s.upfront = true
		return nil
	})
}

// A Variant names a kind of limiter in its errors.
type Variant struct {
	Package string // "warmup"
	Limiter string // "a warming-up limiter"
}

// NewPolicy makes a policy whose limiters keep ledgers of the variant's own, where
// smooth's does not fit. The settings are what the variant's options change, a
// pointer to a struct; ledger makes the ledger of a limiter that begins now, and
// is called only after all options have been applied.
func NewPolicy(v Variant, permitsPerSecond float64, ledger func(now int64) Ledger, settings any, opts []Option) (*Policy, error) {
	p, err := newPolicy(v, permitsPerSecond, opts, settings)
	if err != nil {
		return nil, err
	}
	p.ledger = ledger
	return p, nil
}

// NewSmoothPolicy makes a policy whose limiters keep smooth's ledger with a curve of
// the variant's own. Stored is how many permits a limiter starts with unless
// [WithStored] says otherwise, at most as many as fit. The settings are what the variant's
// options change, a pointer to a struct; curve is called only after all options
// have been applied.
func NewSmoothPolicy(v Variant, permitsPerSecond float64, curve func(permitsPerSecond float64) *smooth.Curve, stored float64, settings any, opts []Option) (*Policy, error) {
	pay := paying{stored: stored}
	p, err := newPolicy(v, permitsPerSecond, opts, settings, &pay)
	if err != nil {
		return nil, err
	}
	t := &Terms{Curve: curve(permitsPerSecond), Stored: pay.stored, Upfront: pay.upfront}
	p.terms = t
	p.ledger = func(now int64) Ledger { return smooth.New(t.Curve, now, t.Stored, t.Upfront) }
	return p, nil
}

// Terms are what a limiter with smooth's ledger is made of.
type Terms struct {
	Curve   *smooth.Curve // at the policy's rate
	Stored  float64       // at the start, at most as many as fit; may be +Inf
	Upfront bool
}

// Terms returns what limiters of this policy are made of, and false if their ledger
// is not smooth's (a window's, for one). For limiters that keep their state
// elsewhere than in a Limiter.
func (p *Policy) Terms() (Terms, bool) {
	if p.terms == nil {
		return Terms{}, false
	}
	return *p.terms, true
}

// MaxWait returns the longest wait that callers are promised; Forever if there is none.
func (p *Policy) MaxWait() time.Duration { return p.maxWait }

func newPolicy(v Variant, permitsPerSecond float64, opts []Option, settings ...any) (*Policy, error) {
	if err := checkRate(v.Package, permitsPerSecond); err != nil {
		return nil, err
	}
	general := common{maxWait: Forever}
	settings = append(settings, &general)
	for _, opt := range opts {
		if err := opt.apply(v, settings); err != nil {
			return nil, err
		}
	}
	p := &Policy{clock: general.clock, maxWait: general.maxWait}
	if p.clock == nil {
		p.epoch = time.Now()
	} else {
		p.epoch = p.clock.Now()
	}
	return p, nil
}

// apply changes the first of the settings that the option fits.
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
func (p *Policy) Limiter() *Limiter {
	return p.newLimiter(p.now())
}

// now reads the clock.
func (p *Policy) now() int64 {
	if p.clock == nil {
		return int64(time.Since(p.epoch)) // half the price of time.Now
	}
	return int64(p.clock.Since(p.epoch))
}
