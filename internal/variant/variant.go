// Package variant makes kinds of limiters: bursty, warm-ups, windows and quotas are variants.
package variant

import (
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/option"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

// Option returns an option of that name ("WithBurst") for variants whose settings are an S.
func Option[S any](name string, set func(*S) error) reserve.Option {
	return reserve.Option(option.New(name, set))
}

// A Variant is a kind of limiter, with a Curve or a Ledger. Its functions are called after all options.
type Variant struct {
	Package string // in errors: "warmup"
	Limiter string // in errors: "a warming-up limiter"; policies of the same are of one kind

	Settings any

	// Curve makes the curve at a rate, for package smooth's ledger, which starts with Stored permits unless
	// reserve.WithStored says otherwise.
	Curve  func(permitsPerSecond float64) *smooth.Curve
	Stored float64

	// Ledger makes the ledger of a limiter that begins now. Wall returns the wall clock at a time of the limiter's
	// clock. A [engine.Changer] can be given another policy: see reserve.Limiter.SetPolicy.
	Ledger func(now int64, wall func(now int64) time.Time) engine.Ledger
	// Load makes a ledger of what AppendState had appended at the time then; nil: it can't be saved. Terms are what a
	// Changer's AppendTerms had appended, perhaps of another policy, which the ledger has then; they are empty if the
	// ledger is no Changer. A nil state is a new ledger's.
	Load func(terms, state []byte, then int64, wall func(t int64) time.Time) (engine.Ledger, error)

	// Recheck is how often the limiter looks again at times that follow the wall clock and so may become earlier.
	// Default: 0, never.
	Recheck time.Duration
	// StallIsPause: a time in which the whole program stood still, so that a caller wakes more than 1 ms late, is a
	// pause. Otherwise callers whose times passed meanwhile go at once.
	StallIsPause bool
}

// Policy returns the policy of v at a rate. It returns a *[reserve.ValueError] for a rate that is not positive (+Inf:
// no limit), an *[reserve.OptionError] for an option that does not fit, and the options' own errors.
func (v Variant) Policy(permitsPerSecond float64, opts ...reserve.Option) (*reserve.Policy, error) {
	if !(permitsPerSecond > 0) { // NaN, too
		return nil, &reserve.ValueError{
			Package: v.Package, Name: "rate", Value: permitsPerSecond, Want: "a positive number of permits per second",
		}
	}
	general := option.Common{MaxWait: reserve.Forever}
	settings := []any{&general}
	if v.Settings != nil {
		settings = append(settings, v.Settings)
	}
	pay := option.Paying{Stored: v.Stored}
	if v.Curve != nil {
		settings = append(settings, &pay)
	}
	for _, opt := range opts {
		if err := v.apply(option.Option(opt), settings); err != nil {
			return nil, err
		}
	}
	t := engine.Terms{
		Clock: general.Clock.Begun(), MaxWait: general.MaxWait, Stored: pay.Stored, Upfront: pay.Upfront,
		Slack: general.Slack, Package: v.Package, Limiter: v.Limiter, New: v.Ledger, Load: v.Load,
		Recheck: v.Recheck, StallIsPause: v.StallIsPause, Errors: refusals{general.Name}, Name: general.Name,
	}
	if v.Curve != nil {
		if t.Curve = v.Curve(permitsPerSecond); pay.Upfront {
			t.Curve = t.Curve.Upfront()
		}
	}
	return (*reserve.Policy)(engine.NewPolicy(t)), nil
}

func (v Variant) apply(o option.Option, settings []any) error {
	if o.Set == nil {
		return &reserve.OptionError{Package: v.Package, Option: "the zero Option", Limiter: v.Limiter}
	}
	for _, s := range settings {
		if fits, err := o.Set(s); fits || err != nil {
			return err
		}
	}
	return &reserve.OptionError{Package: v.Package, Option: o.Name, Limiter: v.Limiter}
}

type refusals struct{ limit string }

func (r refusals) TooLong(wait, maxWait time.Duration, cause error) error {
	return &reserve.WaitError{Wait: wait, MaxWait: maxWait, Cause: cause, Limit: r.limit}
}

func (refusals) TooLarge(permits, largest int) error {
	return &reserve.SizeError{Permits: permits, Max: largest}
}
