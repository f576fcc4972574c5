package engine

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/smooth"
)

// What package bykey needs for keys without a limiter, and for limiters that it drops.

// Check returns the error that ReserveWithin would return in that state.
func (p *Policy) Check(ctx context.Context, state *smooth.State, n int, maxWait time.Duration) error {
	if n < 1 {
		return p.errors.Permits(n)
	}
	if err := done.Cause(ctx); err != nil {
		return err
	}
	now, deadline := p.terms.Now(), p.terms.Deadline(ctx)
	l := state.Ledger(p.terms.Curve, p.terms.Upfront)
	return p.refusal(now, l.Behind(now, nil, n), maxWait, deadline)
}

// A Fresh is the state, at a moment, of a limiter without requests.
type Fresh struct {
	Now          int64
	Rate, Stored float64
}

// Fresh returns the state now of a limiter without requests since begin.
func (p *Policy) Fresh(begin, now int64) Fresh {
	l, _ := p.Ledger(nil, begin, p.terms.Time)
	return Fresh{Now: now, Rate: l.Rate(), Stored: l.Stored(now)}
}

// Like reports whether the limiter is like a fresh one.
func (l *Limiter) Like(f Fresh) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is(f)
}

// is is Like, locked. After SetPolicy the policy's clock has another epoch than the limiter's.
func (l *Limiter) is(f Fresh) bool {
	now := l.read(f.Now + int64(l.cold.policy.terms.Epoch.Sub(l.clock.Epoch)))
	// Idle first: Stored may be slow with a long queue.
	return l.ledger.Idle(now) && l.ledger.Rate() == f.Rate && l.ledger.Stored(now) == f.Stored
}

// Retire ends a limiter that is like a fresh one, so that its key can be dropped, and reports whether it did. Later
// charges go to charge, under the lock. Later refunds are lost: the store was full without them.
func (l *Limiter) Retire(f Fresh, charge func(permits int)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(f) {
		return false
	}
	l.sleepersOf().heir = charge
	return true
}

// Supersede sends later charges to charge, because another limiter takes over. Requests that wait keep their times.
func (l *Limiter) Supersede(charge func(permits int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sleepersOf().heir = charge
}

// Charge takes permits that were used already.
func (l *Limiter) Charge(permits int) {
	now := l.lock()
	defer l.mu.Unlock()
	l.charge(now, permits)
}

// charge charges the limiter, or its successor.
func (l *Limiter) charge(now int64, permits int) {
	if s := l.cold.sleepers; s != nil && s.heir != nil {
		s.heir(permits)
	} else {
		l.ledger.Charge(now, permits)
	}
	l.granted += uint64(permits)
}
