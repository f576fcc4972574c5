package reserve

import (
	"context"
	"time"

	"github.com/nextfree/pace/smooth"
)

// A Seed is a limiter that is still small: it has made no reservation that may come
// back, is not paused, and has its policy's rate. It is 24 bytes, where a Limiter is
// some 200, for whoever keeps very many of them, most of which never grow: see package
// keyed. It can take permits that are to be had now; for all else it grows into a [Limiter].
//
// A Seed does not remember its policy, and has no lock: it is for the caller to
// give it the same one each time, and one call at a time. [Untouched.Seed] makes it.
type Seed struct{ state smooth.State }

// TryAcquire is [Limiter.TryAcquire].
func (s *Seed) TryAcquire(p *Policy, n int) bool {
	if n < 1 {
		return false
	}
	l := s.ledger(p)
	if !l.Take(p.now(), n) {
		return false // and the seed is as before, to the bit
	}
	s.state = l.State()
	return true
}

// Acquire is [Limiter.Acquire] where that need not wait. Where it would have to, it
// takes nothing and returns false: a caller that waits may give up, and a Seed can take nothing back.
func (s *Seed) Acquire(ctx context.Context, p *Policy, n int) (bool, error) {
	if err := s.Check(ctx, p, n, Forever); err != nil {
		return false, err
	}
	return s.TryAcquire(p, n), nil
}

// Check returns the error that [Limiter.ReserveWithin] would return. It takes nothing.
func (s *Seed) Check(ctx context.Context, p *Policy, n int, maxWait time.Duration) error {
	if err := check(ctx, n); err != nil {
		return err
	}
	now, deadline := p.now(), p.deadline(ctx)
	l := s.ledger(p)
	return p.refusal(now, l.Look(now, n), maxWait, deadline)
}

// Charge takes n permits (at least 1) that have been used already.
func (s *Seed) Charge(p *Policy, n int) {
	l := s.ledger(p)
	l.Charge(p.now(), n)
	s.state = l.State()
}

// Limiter returns the limiter that the seed has become. The seed is spent.
func (s *Seed) Limiter(p *Policy) *Limiter {
	return p.smoothLimiter(p.now(), s.ledger(p))
}

func (s *Seed) ledger(p *Policy) smooth.Ledger {
	return s.state.Ledger(p.terms.Curve, p.terms.Upfront)
}
