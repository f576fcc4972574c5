package engine

import (
	"bytes"
	"errors"
	"time"

	"github.com/nextfree/pace/internal/smooth"
)

// A Policy is reserve.Policy, immutable.
type Policy struct{ terms Terms }

// Terms are what a policy says, immutable.
type Terms struct {
	Clock                 // with the moment at which the policy was made as its epoch
	MaxWait time.Duration // that callers are promised
	Curve   *smooth.Curve // at the policy's rate; nil if the ledger is not smooth's (a window's, for one)
	Stored  float64       // at the start, at most as many as fit; may be +Inf
	Upfront bool
	Slack   time.Duration // by which callers may wake late
	Errors  Errors
	Name    string // in errors; "": it has none

	Package, Limiter string // in errors: "warmup", "a warming-up limiter"

	// Those of variant.Variant. New is its Ledger, nil where the policy has a curve. Load may be nil.
	New  func(now int64, wall func(now int64) time.Time) Ledger
	Load func(terms, state []byte, then int64, wall func(t int64) time.Time) (Ledger, error)

	// How often a time that follows the wall clock is looked at again; 0: never.
	Recheck      time.Duration
	StallIsPause bool // see checkStall
}

// Errors makes callers' errors, of package reserve's types.
type Errors interface {
	TooLong(wait, maxWait time.Duration, cause error) error
	TooLarge(permits, largest int) error
}

func NewPolicy(t Terms) *Policy { return &Policy{terms: t} }

func (p *Policy) Terms() *Terms { return &p.terms }

// Ledger returns a new ledger. Wall returns the wall clock's time.
func (p *Policy) Ledger(now int64, wall func(t int64) time.Time) Ledger {
	if t := &p.terms; t.Curve != nil {
		return smooth.New(t.Curve, now, t.Stored, t.Upfront)
	}
	return p.terms.New(now, wall)
}

// Load returns the ledger that AppendState saved at the time then, under the terms that AppendTerms saved; nil: the
// policy's. If these are others, it needs Change.
func (p *Policy) Load(terms, state []byte, then int64, wall func(t int64) time.Time) (Ledger, error) {
	t := &p.terms
	switch {
	case t.Curve == nil && t.Load == nil:
		return nil, errors.New(t.Limiter + " has no state that can be restored")
	case t.Curve == nil:
		return t.Load(terms, state, then, wall)
	case len(terms) == 0 || bytes.Equal(terms, t.Curve.AppendTerms(nil, t.Upfront)):
		return smooth.Load(t.Curve, t.Upfront, state, then)
	}
	curve, upfront, err := smooth.LoadTerms(terms)
	if err != nil {
		return nil, err
	}
	return smooth.Load(curve, upfront, state, then)
}

// Change gives a ledger of this kind the policy's terms from now on, if that can be.
func (p *Policy) Change(now int64, of Ledger, wall func(t int64) time.Time) {
	if s, ok := of.(*smooth.Ledger); ok {
		s.Adopt(now, p.terms.Curve, p.terms.Upfront)
	} else if c, ok := of.(Changer); ok {
		c.Change(now, p.terms.New(now, wall))
	}
}

func TermsOf(l Ledger) []byte {
	if c, ok := l.(interface{ AppendTerms(b []byte) []byte }); ok {
		return c.AppendTerms(nil)
	}
	return nil
}

// differs returns what policy could replace p, or "".
func (p *Policy) differs(other *Policy) string {
	switch {
	case other == nil || other.terms.Package != p.terms.Package || other.terms.Limiter != p.terms.Limiter:
		return "a policy of " + p.terms.Limiter
	case !other.terms.Same(&p.terms.Clock):
		return "a policy with the same clock"
	case (p.terms.Curve == nil) != (other.terms.Curve == nil) || other.terms.Upfront != p.terms.Upfront:
		return "a policy that is paid in the same way"
	}
	return ""
}

func (p *Policy) Limiter() *Limiter { return p.New(p.terms.Now()) }

func (p *Policy) New(begin int64) *Limiter {
	return p.With(begin, p.Ledger(begin, p.terms.Time))
}

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
