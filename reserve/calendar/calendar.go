package calendar

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/variant"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("calendar")

// New returns a limiter that grants n permits in each period, of which the present one begins unused. New(10_000,
// Daily(losAngeles, 0)) for 10,000 a day, reset at midnight in California.
//
// It returns a *[reserve.ValueError] for an n below 1, and for a Period or an option that makes no sense, and a
// *[reserve.OptionError] for an option that does not apply: [Spread], [WithMargin], [reserve.WithClock],
// [reserve.WithMaxWait] and [reserve.WithSlack] do.
func New(n int, per Period, opts ...reserve.Option) (*reserve.Limiter, error) {
	p, err := Policy(n, per, opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

// Policy returns the policy of New's limiters, for many keys or a shared limiter, with New's errors.
func Policy(n int, per Period, opts ...reserve.Option) (*reserve.Policy, error) {
	if n < 1 {
		return nil, valueError("n", n, "at least 1 permit")
	}
	if err := per.check(); err != nil {
		return nil, err
	}
	s := settings{period: per, spread: math.Inf(1)}
	r := &rule{rate: reserve.Per(float64(n), per.nominal()), quota: int64(n), period: per}
	p, err := variant.Variant{
		Package: "calendar", Limiter: "a calendar's quota", Settings: &s,
		Ledger: func(now int64, wall func(now int64) time.Time) engine.Ledger { return newLedger(r, now, wall) },
		Load: func(terms, state []byte, then int64, wall func(int64) time.Time) (engine.Ledger, error) {
			of, err := r.loadTerms(terms)
			if err != nil {
				return nil, err
			}
			return of.load(state, then, wall)
		},
		Recheck: time.Minute, // the wall clock may have been set, or the machine slept
	}.Policy(r.rate, opts...)
	r.spread, r.margin = s.spread, int64(s.margin)
	return p, err
}

type settings struct {
	period Period
	spread float64
	margin time.Duration
}

// Spread paces what is left of the quota over the rest of the period: no faster than soonest times the even rate.
// Soonest is at least 1: 1 is strictly even. Default: +Inf, no pacing.
//
// With 8,640 a day and Spread(1), a call goes each 10 s from midnight on, or each 5 s if none was made until noon.
func Spread(soonest float64) reserve.Option {
	return variant.Option("Spread", func(s *settings) error {
		if !(soonest >= 1) {
			return valueError("Spread", soonest, "1 or more times the even rate")
		}
		s.spread = soonest
		return nil
	})
}

// WithMargin grants nothing in the first and the last d of a period, for a server whose clock may differ by up to d.
// With WithMargin(2*time.Minute), a daily quota rests from 23:58 to 0:02. At most a quarter of the period. Default: 0.
func WithMargin(d time.Duration) reserve.Option {
	return variant.Option("WithMargin", func(s *settings) error {
		if most := s.period.nominal() / 4; d < 0 || d > most {
			return valueError("WithMargin", d, "0 to a quarter of the period")
		}
		s.margin = d
		return nil
	})
}

func quotaOf(permitsPerSecond float64, p Period) int64 {
	n := math.Round(permitsPerSecond * p.nominal().Seconds())
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(1, int64(n))
}
