package engine

import (
	"fmt"
	"time"

	"github.com/nextfree/pace/smooth"
)

// A Policy is reserve.Policy. It is immutable.
type Policy struct {
	terms   Terms
	variant Variant
	errors  Errors
}

// Terms are a policy's numbers. They are immutable.
type Terms struct {
	Clock                 // with the moment at which the policy was made as its epoch
	MaxWait time.Duration // that callers are promised
	Curve   *smooth.Curve // at the policy's rate; nil if the ledger is not smooth's (a window's, for one)
	Stored  float64       // at the start, at most as many as fit; may be +Inf
	Upfront bool
	Slack   time.Duration // by which callers may wake late
}

// Errors makes callers' errors, of package reserve's types.
type Errors interface {
	Permits(n int) error // n is less than 1
	TooLong(wait, maxWait time.Duration, cause error) error
	TooLarge(permits, largest int) error
}

func NewPolicy(t Terms, v Variant, e Errors) *Policy { return &Policy{terms: t, variant: v, errors: e} }

func (p *Policy) Terms() *Terms { return &p.terms }

// Kind returns the variant's package, and what errors call its limiters.
func (p *Policy) Kind() (pkg, limiter string) { return p.variant.Package, p.variant.Limiter }

// Ledger returns a new ledger that is not smooth's, or one that AppendState saved at the time then. Wall returns the
// wall clock's time.
func (p *Policy) Ledger(saved []byte, then int64, wall func(t int64) time.Time) (Ledger, error) {
	switch {
	case saved == nil:
		return p.variant.Ledger(then, wall), nil
	case p.variant.Load == nil:
		return nil, fmt.Errorf("%s has no state that can be restored", p.variant.Limiter)
	}
	return p.variant.Load(saved, then, wall)
}

// differs says what policy could replace p, or "" if other can.
func (p *Policy) differs(other *Policy) string {
	switch {
	case other == nil || other.variant.Package != p.variant.Package || other.variant.Limiter != p.variant.Limiter:
		return "a policy of " + p.variant.Limiter
	case !other.terms.Same(&p.terms.Clock):
		return "a policy with the same clock"
	case (p.terms.Curve == nil) != (other.terms.Curve == nil) || other.terms.Upfront != p.terms.Upfront:
		return "a policy that is paid in the same way"
	case p.terms.Curve == nil && other.variant.Change == nil:
		return "a policy of a variant with Change"
	}
	return ""
}

// Limiter returns a new limiter of the policy.
func (p *Policy) Limiter() *Limiter { return p.New(p.terms.Now()) }

// New returns a limiter without requests since begin.
func (p *Policy) New(begin int64) *Limiter {
	if t := &p.terms; t.Curve != nil {
		return p.Grow(begin, *smooth.New(t.Curve, begin, t.Stored, t.Upfront))
	}
	return p.withLedger(begin, p.variant.Ledger(begin, p.terms.Time))
}

func (p *Policy) withLedger(seen int64, ledger Ledger) *Limiter {
	l := &Limiter{clock: p.terms.Clock, ledger: ledger, seen: seen, cold: &cold{policy: p}}
	l.busy.Store(unknown)
	return l
}

// Grow returns a limiter with that ledger, for a policy with a curve.
func (p *Policy) Grow(now int64, ledger smooth.Ledger) *Limiter {
	l := &smoothLimiter{Limiter: Limiter{clock: p.terms.Clock, seen: now}, ledger: ledger, cold: cold{policy: p}}
	l.Limiter.ledger, l.Limiter.cold = &l.ledger, &l.cold
	l.busy.Store(unknown)
	return &l.Limiter
}
