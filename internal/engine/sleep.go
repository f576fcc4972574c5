package engine

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/wake"
)

// sleep blocks until the reservation's time, or gives it back. The limiter must be locked, and is unlocked then.
func (l *Limiter) sleep(ctx context.Context, r *Reservation, now, deadline int64) (waited time.Duration, err error) {
	begin, over := now, false
	all := l.sleepersOf()
	s := all.enter(r.slot.Number, deadline)
	all.permits += r.slot.Permits
	defer func() {
		if !over { // the context's methods are the caller's, and may panic
			l.settle(l.seen, r, 0)
		}
		all.permits -= r.slot.Permits
		all.waited += waited
		all.leave(s)
		all.tell(l, l.seen)
		if all.late > 0 {
			all.check(l, l.seen, all.late-1)
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
			err = l.cold.policy.terms.Errors.TooLong(until(at, now), until(deadline, now), context.DeadlineExceeded)
		}
		if err != nil {
			return time.Duration(now - begin), err
		}
		var t int64
		t, err = l.nap(ctx, s, now, l.look(now, at))
		now = l.read(t)
	}
}

// nap blocks, with the limiter unlocked, until the time or a reason to look again, and returns a reading of the clock.
func (l *Limiter) nap(ctx context.Context, s *sleeper, now, at int64) (t int64, err error) {
	wait := until(at, now)
	short := l.clock.Fake == nil && s.timed && l.slack() == 0 && s.Short(wait)
	switch {
	case l.clock.Fake != nil || short:
		s.until = at
	case s.timed:
		s.set(l, now, at)
	default:
		s.until = never
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

func (l *Limiter) slack() time.Duration { return l.cold.policy.terms.Slack }

// stall is how late a caller wakes at least after the program stood still.
const stall = int64(time.Millisecond)

// checkStall makes a pause of a time in which the program stood still (SIGSTOP, a suspended machine), so that not all
// callers whose times have passed go at once. A caller causes at most one.
func (l *Limiter) checkStall(t int64) {
	s := l.cold.sleepers
	if s == nil || s.list.Len() == 0 || l.clock.Fake != nil || !l.cold.policy.terms.StallIsPause {
		return
	}
	e := s.list.All()[0]
	if e.stalled {
		return
	}
	due, known := l.ledger.Ready(l.seen, e.number)
	if due = max(due, l.seen); known && t-due > max(stall, int64(l.slack())) {
		e.stalled = true
		l.ledger.Pause(due, t)
		l.changed(t, true)
	}
}
