package engine

import (
	"time"

	"github.com/nextfree/pace/smooth"
)

// SetRate is reserve.Limiter's. The rate is positive.
func (l *Limiter) SetRate(permitsPerSecond float64) {
	now := l.lock()
	defer l.mu.Unlock()
	l.ledger.SetRate(now, permitsPerSecond)
	l.changed(now)
}

// Retime is reserve.Limiter's. The rate is positive.
func (l *Limiter) Retime(permitsPerSecond float64) {
	now := l.lock()
	defer l.mu.Unlock()
	l.ledger.Retime(now, permitsPerSecond)
	l.changed(now)
	l.cold.sleepers.giveUp(l, now)
	l.cold.sleepers.notify(true)
}

// SetPolicy is reserve.Limiter's. If the policy does not fit, it changes nothing and returns which one would.
func (l *Limiter) SetPolicy(p *Policy) (want string) {
	now := l.lock()
	defer l.mu.Unlock()
	if want := l.cold.policy.differs(p); want != "" {
		return want
	}
	l.replace(now, p)
	return ""
}

// replace puts another policy in place. The limiter must be locked.
func (l *Limiter) replace(now int64, p *Policy) {
	l.cold.policy = p
	if p.terms.Curve != nil {
		l.ledger.(*smooth.Ledger).SetCurve(now, p.terms.Curve)
	} else {
		p.variant.Change(now, l.ledger)
	}
	l.changed(now)
}

// PauseUntil is reserve.Limiter's.
func (l *Limiter) PauseUntil(t time.Time) {
	until := l.clock.Since(t)
	now := l.lock()
	defer l.mu.Unlock()
	if l.ledger.Pause(now, until) {
		l.cold.sleepers.giveUp(l, now)
		l.cold.sleepers.notify(true)
	}
}

// Stop is PauseUntil, for a server that refuses: a window's clock does not stop, because the server's does not. Permits
// used before leave it meanwhile.
func (l *Limiter) Stop(t time.Time) {
	until := l.clock.Since(t)
	now := l.lock()
	defer l.mu.Unlock()
	stop := l.ledger.Pause
	if o, ok := l.ledger.(Observer); ok {
		stop = o.Stop
	}
	if stop(now, until) {
		l.cold.sleepers.giveUp(l, now)
		l.cold.sleepers.notify(true)
	}
}

// Resume is reserve.Limiter's.
func (l *Limiter) Resume() {
	now := l.lock()
	defer l.mu.Unlock()
	if l.ledger.Resume(now) {
		l.changed(now)
	}
}

// changed updates what depends on promised times after they may have become earlier. The limiter must be locked.
func (l *Limiter) changed(now int64) {
	l.free()
	l.cold.sleepers.tell(l, now)
	l.cold.sleepers.notify(false)
}

// Said tells a quota by the calendar what a server says of it: so many permits are left until then. It does nothing for
// other limiters.
func (l *Limiter) Said(left float64, end time.Time) {
	o, ok := l.ledger.(Observer)
	if !ok {
		return
	}
	t := l.clock.Since(end)
	now := l.lock()
	defer l.mu.Unlock()
	o.Said(now, left, t)
	l.changed(now)
	l.cold.sleepers.giveUp(l, now)
}
