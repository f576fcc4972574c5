package engine

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/smooth"
)

// Package keyed keeps most keys without a limiter. These are the functions for a key's state, and for the limiter of a key
// that may be dropped.

// Check returns the error that a limiter of the policy in that state would return to reserve.Limiter.ReserveWithin.
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

// A Fresh is the state, at one moment, of a limiter that never had a request. Nothing is owed or promised, and there is
// no pause. It has this rate and this many stored permits.
type Fresh struct {
	Now          int64
	Rate, Stored float64
}

// Fresh returns the present state of a limiter that has had no request since begin.
func (p *Policy) Fresh(begin, now int64) Fresh {
	if t := &p.terms; t.Curve != nil {
		l := smooth.New(t.Curve, begin, t.Stored, t.Upfront)
		return Fresh{Now: now, Rate: l.Rate(), Stored: l.Stored(now)}
	}
	l := p.variant.Ledger(begin, p.terms.Time)
	return Fresh{Now: now, Rate: l.Rate(), Stored: l.Stored(now)}
}

// Like reports whether the limiter is like a fresh one.
func (l *Limiter) Like(f Fresh) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.is(f)
}

// is is like for a locked limiter. After SetPolicy its policy's clock has another epoch than its own.
func (l *Limiter) is(f Fresh) bool {
	now := l.read(f.Now + int64(l.cold.policy.terms.Epoch.Sub(l.clock.Epoch)))
	// Idle first: it is quick, and what Stored takes may grow with the queue.
	return l.ledger.Idle(now) && l.ledger.Rate() == f.Rate && l.ledger.Stored(now) == f.Stored
}

// Retire invalidates the limiter if it is like a fresh one, so that its key can be dropped, and reports whether it did.
// Later refunds are lost (the store was full without them). Later charges go to charge, which is called under the
// limiter's lock.
func (l *Limiter) Retire(f Fresh, charge func(permits int)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(f) {
		return false
	}
	l.sleepersOf().heir = charge
	return true
}

// Supersede makes the limiter's later charges go to charge, as Retire does, in whatever state it is: another limiter takes
// its place. Requests that wait keep their times.
func (l *Limiter) Supersede(charge func(permits int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sleepersOf().heir = charge
}

// Charge takes permits that were used already. The next caller waits for them, as for permits that a Settle charges.
func (l *Limiter) Charge(permits int) {
	now := l.lock()
	defer l.mu.Unlock()
	l.charge(now, permits)
}

// charge charges the limiter, or the one that took its place. The limiter must be locked.
func (l *Limiter) charge(now int64, permits int) {
	if s := l.cold.sleepers; s != nil && s.heir != nil {
		s.heir(permits)
	} else {
		l.ledger.Charge(now, permits)
	}
	l.granted += uint64(permits)
}
