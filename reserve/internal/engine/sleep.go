package engine

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/wake"
)

// sleep blocks until the reservation's time has come, and returns how long that took. If it can't be awaited, the
// reservation is given back. The limiter must be locked. It is unlocked when sleep returns.
func (l *Limiter) sleep(ctx context.Context, r *Reservation, now, deadline int64) (waited time.Duration, err error) {
	begin := now
	over := false
	s := l.sleepersOf().enter(r.slot.Number, deadline)
	r.sleepers++
	defer func() {
		if !over { // the context's methods are the caller's, and may panic
			l.settle(l.seen, r, 0)
		}
		r.sleepers--
		l.cold.sleepers.leave(s)
		l.cold.sleepers.waited += waited
		l.cold.sleepers.tell(l, l.seen)
		if l.cold.sleepers.checking {
			l.cold.sleepers.check(l, l.seen)
		}
		l.mu.Unlock()
	}()
	for {
		if err != nil && l.ledger.Waits(now, r.slot.Number) {
			return time.Duration(now - begin), err
		}
		at := r.at(now)
		if r.cancelled {
			err = ErrCancelled
		} else if at <= now {
			over = true
			return time.Duration(max(0, at-begin)), nil
		} else if deadline < at && err == nil {
			err = l.cold.policy.errors.TooLong(until(at, now), until(deadline, now), context.DeadlineExceeded)
		}
		if err != nil {
			return time.Duration(now - begin), err
		}
		var t int64
		t, err = l.nap(ctx, s, now, l.look(now, at))
		now = l.read(t)
	}
}

// nap blocks until the time has come, or until there is a reason to look at it again, and returns a
// reading of the clock. The limiter is unlocked meanwhile. It is locked again also when the user's clock or
// context panics.
func (l *Limiter) nap(ctx context.Context, s *sleeper, now, at int64) (t int64, err error) {
	wait := until(at, now)
	short := l.clock.Fake == nil && s.timed && l.slack() == 0 && s.Short(wait)
	switch {
	case l.clock.Fake != nil || short:
		s.until = at
	case s.timed:
		s.set(l, now, at)
	}
	l.mu.Unlock()
	defer l.mu.Lock()
	switch {
	case l.clock.Fake != nil:
		sleepOn(ctx, &l.clock, now, at, &s.Sleeper)
	case short:
		wake.Spin(wait)
	default:
		s.Sleep(ctx)
	}
	err = done.Cause(ctx)
	return l.clock.Now(), err
}

// slack returns by how much callers may wake late, so that they wake together. The limiter must be locked.
func (l *Limiter) slack() time.Duration { return l.cold.policy.terms.Slack }

// stall is how late a caller may wake before its limiter takes the lateness for a stall of the program.
const stall = int64(time.Millisecond)

// checkStall finds out, at the reading t of the clock, whether the program has stood still for longer than stall since
// the first caller's time came. SIGSTOP stops it, or a virtual machine that is suspended. If so that was a pause:
// callers whose times passed meanwhile do not go all at once, on top of what is free by now. A caller causes one pause
// at most: if it alone is late, the others go on after it. On a fake clock, time is the user's.
func (l *Limiter) checkStall(t int64) {
	if l.cold.sleepers == nil || l.clock.Fake != nil || !l.cold.policy.variant.StallIsPause {
		return
	}
	e := l.cold.sleepers.first()
	if e == nil || e.stalled {
		return
	}
	due, known := l.ledger.Ready(l.seen, e.number)
	if due = max(due, l.seen); known && t-due > max(stall, int64(l.slack())) {
		e.stalled = true
		l.ledger.Pause(due, t)
		l.cold.sleepers.giveUp(l, t)
		l.cold.sleepers.notify(true)
	}
}
