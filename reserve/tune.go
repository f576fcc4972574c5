package reserve

import (
	"time"

	"github.com/nextfree/pace/smooth"
)

// SetRate changes the rate from now on. It changes neither promised times nor what is owed. At 1/s, after Acquire(8),
// SetRate(2) leaves the next caller waiting the same 8 s, and the one behind it waits 8.5 s. Stored permits scale with
// the capacity. +Inf means no limit.
//
// Waiting callers keep the wait of the rate at which they asked, whether the rate rises or falls. [Limiter.Retime]
// changes their waits too. Use one or the other for a limiter: SetRate upwards and Retime downwards compound. At 100/s
// with 100 callers waiting, SetRate(200) leaves the last one's wait at 1 s, and Retime(100) then doubles it. Ten times
// in turn make it 17 minutes. A limiter that follows what a server allows needs Retime alone.
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

// Retime changes the rate from now on, for waiting requests too. It multiplies the debt and all remaining waits by the
// old rate over the new one. It is for a limiter that follows what a server says. At 1/s, after Acquire(8), Retime(2)
// makes the next caller wait 4 s and the one behind it 4.5 s. If no request waits and nothing is owed it is
// [Limiter.SetRate].
//
// A lower rate makes promised times later. A waiting caller whose deadline no longer fits gives up.
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

// SetPolicy puts another policy of the same kind in place from now on, with its rate, store or window, cold factor,
// longest wait and slack. Promises stay and stored permits scale, as with [Limiter.SetRate]. The new policy's
// [WithStored] does not apply.
//
// If the policy is nil, of another kind, has another clock or pays in another way, SetPolicy returns a
// *[ValueError] and changes nothing.
func (l *Limiter) SetPolicy(p *Policy) error {
	now := l.lock()
	defer l.mu.Unlock()
	if want := l.cold.policy.differs(p); want != "" {
		return valueError("SetPolicy's policy", p, want)
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

// PauseUntil stops the limiter's clock until t. No request goes before t, all times still to come move by
// the pause, waiting callers wait on, and no permits are stored. A request made during the pause may go from
// its end on. A later PauseUntil extends the pause, an earlier one changes nothing, and
// [Limiter.Resume] ends it.
//
// A waiting caller whose deadline no longer fits gives up at once, and callers behind it move up.
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

// stop is PauseUntil, except that a window's clock goes on: permits used before leave it meanwhile.
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

// Resume ends a pause now. Times still to come become earlier by the remainder of the pause, and requests
// that are due go in order. Without a pause it does nothing.
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

// said tells a quota by the calendar what a server says of it.
func (l *Limiter) said(left float64, end time.Time) {
	q, ok := l.ledger.(interface {
		Said(now int64, left float64, end int64)
	})
	if !ok {
		return
	}
	t := l.clock.Since(end)
	now := l.lock()
	defer l.mu.Unlock()
	q.Said(now, left, t)
	l.changed(now)
	l.cold.sleepers.giveUp(l, now)
}
