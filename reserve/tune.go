package reserve

import (
	"time"

	"github.com/nextfree/pace/smooth"
)

// SetRate changes the rate, from now on. Times that have been promised stay as they
// are, also that of the next request, which pays for those before it. If nobody waits and
// nothing is owed, stored permits scale with the capacity, and what comes back later with
// them. At 1/s, after Acquire(8), SetRate(2) leaves the next caller to wait the same 8 s, and the one
// behind it 8.5 s; see [Limiter.Retime] for the other way. +Inf means no limit.
//
// For a rate that is not positive it returns a *[ValueError] and changes nothing.
func (l *Limiter) SetRate(permitsPerSecond float64) error {
	if err := checkRate("reserve", permitsPerSecond); err != nil {
		return err
	}
	now := l.lock()
	defer l.mu.Unlock()
	l.ledger.SetRate(now, permitsPerSecond)
	l.changed(now)
	return nil
}

// Retime changes the rate, from now on, also for requests that wait: the debt and all remaining
// waits are multiplied by the old rate over the new one. It is for a limiter that follows
// what a server says. At 1/s, after Acquire(8), Retime(2) makes the next caller wait 4 s and the
// one behind it 4.5 s. If nobody waits and nothing is owed it is [Limiter.SetRate].
//
// A lower rate makes promised times later; a sleeper whose deadline no longer fits gives up.
// For a rate that is not positive it returns a *[ValueError] and changes nothing.
func (l *Limiter) Retime(permitsPerSecond float64) error {
	if err := checkRate("reserve", permitsPerSecond); err != nil {
		return err
	}
	now := l.lock()
	defer l.mu.Unlock()
	l.ledger.Retime(now, permitsPerSecond)
	l.changed(now)
	l.cold.sleepers.giveUp(l, now)
	l.cold.sleepers.notify(true)
	return nil
}

// SetPolicy puts another policy of the same kind in place, from now on: its rate, its store or
// window, its cold factor, its longest wait. Promises stay, and stored permits scale, as with
// [Limiter.SetRate]; the permits that a policy says are stored at the start are not added.
//
// For a policy that is nil, of another kind, with another clock or another way of paying it returns a
// *[ValueError] and changes nothing.
func (l *Limiter) SetPolicy(p *Policy) error {
	now := l.lock()
	defer l.mu.Unlock()
	if want := l.cold.policy.differs(p); want != "" {
		return &ValueError{Package: "reserve", Name: "SetPolicy's policy", Value: p, Want: want}
	}
	l.replace(now, p)
	return nil
}

// replace puts another policy in place. The limiter must be locked.
func (l *Limiter) replace(now int64, p *Policy) {
	l.cold.policy = p
	if p.terms.Curve != nil {
		l.ledger.(interface{ SetCurve(int64, *smooth.Curve) }).SetCurve(now, p.terms.Curve)
	} else {
		p.variant.Change(now, l.ledger)
	}
	l.changed(now)
}

// PauseUntil stops the limiter until t. No request goes before t, all times that are still to come
// move by the pause, sleepers sleep on, and nothing is stored. Requests that are made meanwhile may
// go from its end on. A later PauseUntil extends the pause; an earlier one changes nothing;
// [Limiter.Resume] ends it.
//
// A sleeper whose deadline no longer fits gives up at once, and those behind it move up.
//
// A limiter at 10/s with callers due in 100 and 200 ms, paused for 2 s, serves them in 2.1 and 2.2 s.
func (l *Limiter) PauseUntil(t time.Time) {
	until := l.clock.Since(t)
	now := l.lock()
	defer l.mu.Unlock()
	if l.ledger.Pause(now, until) {
		l.cold.sleepers.giveUp(l, now)
		l.cold.sleepers.notify(true)
	}
}

// stop lets no request go before t. It is PauseUntil, but in a window time goes on: what went before
// leaves it meanwhile.
func (l *Limiter) stop(t time.Time) {
	until := l.clock.Since(t)
	now := l.lock()
	defer l.mu.Unlock()
	stop := l.ledger.Pause
	if w, ok := l.ledger.(interface{ Stop(now, until int64) bool }); ok {
		stop = w.Stop
	}
	if stop(now, until) {
		l.cold.sleepers.giveUp(l, now)
		l.cold.sleepers.notify(true)
	}
}

// Resume ends a pause now: times that are still to come become earlier by the rest of it, and
// requests that are due go in order. Without a pause it does nothing.
func (l *Limiter) Resume() {
	now := l.lock()
	defer l.mu.Unlock()
	if l.ledger.Resume(now) {
		l.changed(now)
	}
}

// changed takes note that times may have become earlier. The limiter must be locked.
func (l *Limiter) changed(now int64) {
	l.free()
	l.cold.sleepers.tell(l, now)
	l.cold.sleepers.notify(false)
}
