package engine

import "time"

// Retire ends a limiter whose key is dropped, or has a new limiter: later charges go to what heir returns. Heir is
// called under the lock, with the limiter's time for a reading of its policy's clock. If it returns nil, Retire does
// nothing and returns false. Requests that wait keep their times. Later refunds are lost: a store that is dropped was
// full without them.
func (l *Limiter) Retire(t int64, heir func(of Ledger, now int64) (charge func(permits int))) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	// After SetPolicy the policy's clock has another epoch than the limiter's.
	charge := heir(l.ledger, l.read(t+int64(l.cold.policy.terms.Epoch.Sub(l.clock.Epoch))))
	if charge != nil {
		l.sleepersOf().heir = charge
	}
	return charge != nil
}

func (l *Limiter) Promised() (last time.Time, waits bool) {
	now := l.lock()
	defer l.mu.Unlock()
	at, ok := int64(0), false
	if of, tells := l.ledger.(interface {
		Promised(now int64) (last int64, waits bool)
	}); tells {
		at, ok = of.Promised(now)
	} else if !l.ledger.Idle(now) {
		at, ok = l.ledger.NextFree(now), true
	}
	return l.clock.Time(at), ok
}

func (l *Limiter) Charge(permits int) {
	now := l.lock()
	defer l.mu.Unlock()
	l.charge(now, permits)
}

func (l *Limiter) charge(now int64, permits int) {
	if s := l.cold.sleepers; s != nil && s.heir != nil {
		s.heir(permits)
	} else {
		l.ledger.Charge(now, permits)
	}
	l.granted += uint64(permits)
}
