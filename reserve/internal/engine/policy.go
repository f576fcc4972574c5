package engine

import (
	"errors"
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
	TooLong(wait, maxWait time.Duration, cause error) error
	TooLarge(permits, largest int) error
}

func NewPolicy(t Terms, v Variant, e Errors) *Policy { return &Policy{terms: t, variant: v, errors: e} }

func (p *Policy) Terms() *Terms { return &p.terms }

// Kind returns the variant's package, and what errors call its limiters.
func (p *Policy) Kind() (pkg, limiter string) { return p.variant.Package, p.variant.Limiter }

// Ledger returns a new ledger, or one that AppendState saved at the time then. Wall returns the wall clock's time.
func (p *Policy) Ledger(saved []byte, then int64, wall func(t int64) time.Time) (Ledger, error) {
	t, v := &p.terms, &p.variant
	switch {
	case saved == nil && t.Curve != nil:
		return smooth.New(t.Curve, then, t.Stored, t.Upfront), nil
	case saved == nil:
		return v.Ledger(then, wall), nil
	case t.Curve != nil:
		return smooth.Load(t.Curve, t.Upfront, saved, then)
	case !p.Saves():
		return nil, errors.New(v.Limiter + " has no state that can be restored")
	}
	return v.Load(saved, then, wall)
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
	ledger, _ := p.Ledger(nil, begin, p.terms.Time) // a new one needs nothing that could fail
	return p.With(begin, ledger)
}

// With returns a limiter with that ledger.
func (p *Policy) With(now int64, ledger Ledger) (l *Limiter) {
	if s, ok := ledger.(*smooth.Ledger); ok {
		both := &smoothLimiter{ledger: *s}
		l = &both.Limiter
		l.ledger, l.cold = &both.ledger, &both.cold
	} else {
		l = &Limiter{ledger: ledger, cold: new(cold)}
	}
	l.clock, l.seen, l.cold.policy = p.terms.Clock, now, p
	l.busy.Store(unknown)
	return l
}
