package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/smooth"
)

var ErrCancelled = errors.New("pace: the reservation was cancelled")

type Promise interface {
	Permits() int
	At() time.Time
	Delay() time.Duration
	Wait(ctx context.Context) error
	Cancel()
	Settle(actual int)
}

func NewReservation(p Promise) Reservation { return Reservation{promise: &p} }

// A Reservation is reserve.Reservation.
type Reservation struct {
	_       [0]sync.Mutex // go vet reports copies
	promise *Promise      // nil if a Limiter made the reservation

	limiter *Limiter
	slot    smooth.Slot

	// Guarded by the limiter's lock.
	told      int64 // the time that was last returned, on the limiter's clock
	settled   bool
	cancelled bool // settled at 0
	begun     bool // its use has begun: see Begin
}

func (r *Reservation) Permits() int {
	if r.promise != nil {
		return (*r.promise).Permits()
	}
	return r.slot.Permits
}

// do calls pass with the promise, or else own with the limiter locked. The zero value does nothing.
func (r *Reservation) do(pass func(p Promise), own func(now int64)) {
	switch l := r.limiter; {
	case r.promise != nil:
		pass(*r.promise)
	case l != nil:
		now := l.lock()
		defer l.mu.Unlock()
		own(now)
	}
}

func (r *Reservation) At() (at time.Time) {
	r.do(func(p Promise) { at = p.At() }, func(now int64) { at = r.limiter.clock.Time(r.at(now)) })
	return
}

func (r *Reservation) Delay() (d time.Duration) {
	r.do(func(p Promise) { d = p.Delay() }, func(now int64) { d = max(0, until(r.at(now), now)) })
	return
}

func (r *Reservation) Wait(ctx context.Context) error {
	switch {
	case r.promise != nil:
		return (*r.promise).Wait(ctx)
	case r.limiter == nil:
		return ErrCancelled
	}
	deadline, err := r.limiter.clock.Deadline(ctx), done.Cause(ctx)
	now := r.limiter.lock()
	if err != nil {
		defer r.limiter.mu.Unlock()
		if r.cancelled {
			return ErrCancelled
		}
		r.limiter.settle(now, r, 0)
		return err
	}
	_, err = r.limiter.sleep(ctx, r, now, deadline)
	return err
}

func (r *Reservation) Settle(actual int) {
	r.do(func(p Promise) { p.Settle(actual) }, func(now int64) { r.limiter.settle(now, r, actual) })
}

func (r *Reservation) Begin() { r.use(UseTracker.Begin, user.Begin) }
func (r *Reservation) End()   { r.use(UseTracker.End, user.End) }

type user interface {
	Begin()
	End()
}

// use tells a ledger that counts by use, or passes it on to the promise.
func (r *Reservation) use(tell func(UseTracker, int64, smooth.Slot) smooth.Slot, pass func(user)) {
	if r.promise != nil {
		if u, ok := (*r.promise).(user); ok {
			pass(u)
		}
	} else if l := r.limiter; l != nil {
		if ledger, ok := l.ledger.(UseTracker); ok {
			l.change(true, func(now int64) bool {
				if r.settled {
					return false
				}
				r.at(now)                                                       // the last time that is known of it
				r.slot.Number, r.begun = tell(ledger, now, r.slot).Number, true // Permits reads the rest without the lock
				return true
			})
		}
	}
}

func (r *Reservation) Await(ctx context.Context) (waited time.Duration, err error) {
	at, wait := r.At(), r.Delay()
	if wait == 0 && r.promise == nil { // only a limiter's time is leave to go: a promise's may be a forecast
		return 0, nil
	}
	err = r.Wait(ctx)
	wait += r.At().Sub(at) // it may have moved meanwhile
	return max(0, wait-r.Delay()), err
}

// Count counts a caller that waits at another limit as waiting at the reservation's, too (by 1), or no longer (by -1).
func (r *Reservation) Count(by int) {
	if r.promise != nil {
		if c, ok := (*r.promise).(interface{ Count(by int) }); ok {
			c.Count(by)
		}
	} else if l := r.limiter; l != nil {
		l.mu.Lock()
		l.sleepersOf().also += by
		l.mu.Unlock()
	}
}

func (r *Reservation) Limiter() *Limiter { return r.limiter }

func (r *Reservation) Promise() Promise {
	if r.promise == nil {
		return nil
	}
	return *r.promise
}

func (r *Reservation) at(now int64) int64 {
	if r.cancelled {
		return r.told
	}
	ready, known := r.limiter.ledger.Ready(now, r.slot.Number)
	if !known { // it was granted
		ready = min(r.told, now)
	}
	r.told = ready
	return ready
}

func (l *Limiter) settle(now int64, r *Reservation, actual int) {
	if r.settled {
		return
	}
	actual = max(0, actual)
	if actual > 0 || !l.ledger.Waits(now, r.slot.Number) {
		r.at(now) // when it was granted, if it was: of a cancelled one the ledger knows nothing
	}
	r.settled, r.cancelled = true, actual == 0
	if ledger, ok := l.ledger.(UseTracker); ok && r.begun && actual > 0 {
		r.slot.Number = ledger.End(now, r.slot).Number
	}
	reserved := r.slot.Permits
	back := max(0, reserved-actual)
	l.cold.givenBack += uint64(back)
	switch {
	case back > 0:
		l.ledger.Return(now, r.slot, actual)
		l.changed(now, false)
	case actual > reserved:
		l.charge(now, actual-reserved)
	}
	if s := l.cold.sleepers; s != nil && r.cancelled {
		s.wake(r.slot.Number)
	}
}
