package reserve

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/wake"
)

// sleep blocks until the reservation's time has come, and returns how long that
// took. If it can't be awaited, the reservation is given back.
func (l *Limiter) sleep(ctx context.Context, r *Reservation) (waited time.Duration, err error) {
	begin := l.policy.now()
	now := begin
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		at := r.at()
		switch {
		case r.over:
			return time.Duration(now - begin), ErrCancelled
		case at <= now:
			return time.Duration(max(0, at-begin)), nil
		}
		if err := l.policy.hopeless(ctx, now, at); err != nil {
			t, _ := l.read(now)
			l.settle(t, r, 0)
			return time.Duration(now - begin), err
		}
		if l.moved == nil {
			l.moved = make(chan struct{})
		}
		moved := l.moved
		r.sleepers++
		l.mu.Unlock()
		l.policy.sleep(ctx, now, at, moved)
		now = l.policy.now()
		l.mu.Lock()
		r.sleepers--
	}
}

// wakeSleepers makes all who sleep look at their times again. The limiter must be locked.
func (l *Limiter) wakeSleepers() {
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}

// hopeless returns why the time can't be waited for, if so.
func (p *Policy) hopeless(ctx context.Context, now, at int64) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if left := add(p.since(deadline), -now); left < add(at, -now) {
			return &WaitError{Wait: time.Duration(add(at, -now)), MaxWait: time.Duration(left), Cause: context.DeadlineExceeded}
		}
	}
	return nil
}

// sleep blocks until the given time, unless the context ends or moved is closed
// before. Now is the reading of the clock that the caller has looked at.
func (p *Policy) sleep(ctx context.Context, now, until int64, moved <-chan struct{}) {
	if p.clock == nil {
		wake.Sleep(ctx, time.Duration(add(until, -now)), moved)
		return
	}
	timer := p.clock.NewTimer(time.Duration(add(until, -now)))
	defer timer.Stop()
	// If a fake clock was moved on before the timer was there, the timer would be late.
	if later := p.now(); later != now {
		timer.Reset(time.Duration(max(0, add(until, -later))))
	}
	select {
	case <-timer.Chan():
	case <-moved:
	case <-ctx.Done():
	}
}
