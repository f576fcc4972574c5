package reserve

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/smooth"
)

// A Reservation is a promise of permits at a known time. The caller may use them from then on. If it does
// not, it should call Cancel, so that other callers get them.
//
// The time becomes earlier when a request in front gives up or settles for less. It becomes later only by a
// pause or a lower [Limiter.Retime]. At and Delay return the present time, and Wait ends at it.
//
// A Reservation is returned by value and costs no allocation. It must not be copied further (go vet
// reports it), because a second Cancel must find the first. The zero value, which comes with an error,
// promises nothing. All methods may be called at the same time.
type Reservation struct {
	_       noCopy
	promise *Promise // given to NewReservation; nil if a Limiter made the reservation

	limiter *Limiter
	slot    smooth.Slot

	// Guarded by the limiter's lock.
	told      int64 // the time that was last returned, on the limiter's clock
	sleepers  int32 // callers in Wait
	settled   bool
	cancelled bool // settled at 0
	uncounted bool // not counted as granted so far: see reserveUncounted
}

// Permits returns the number of permits that were reserved.
func (r *Reservation) Permits() int {
	if r.promise != nil {
		return (*r.promise).Permits()
	}
	return r.slot.Permits
}

// At returns when the permits may be used, by what is known now. After that time, it returns the time last
// known before. A caller that sleeps until At by itself should ask again when it wakes, or use Wait.
func (r *Reservation) At() time.Time {
	switch {
	case r.promise != nil:
		return (*r.promise).At()
	case r.limiter == nil:
		return time.Time{}
	}
	now := r.limiter.lock()
	defer r.limiter.mu.Unlock()
	return r.limiter.clock.Time(r.at(now))
}

// Delay returns how long it is from now until the permits may be used; never negative.
func (r *Reservation) Delay() time.Duration {
	switch {
	case r.promise != nil:
		return (*r.promise).Delay()
	case r.limiter == nil:
		return 0
	}
	now := r.limiter.lock()
	defer r.limiter.mu.Unlock()
	return max(0, until(r.at(now), now))
}

// Wait blocks until the permits may be used. If the context ends first, Wait gives them back, as Cancel
// does, and returns the context's cause. If the context's deadline is before the time that is promised
// now, it gives them back at once and returns a *[WaitError]. If the reservation was or is cancelled, it returns
// [ErrCancelled].
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

// Cancel says that the permits were not used. Reservations may be cancelled in any order and at any
// time. After the first Cancel or Settle it does nothing. It is Settle(0).
//
// The limiter is then in the state in which it would be if the permits had never been reserved. If the reservation's
// time is still to come, all requests behind it move up. If the time has come, as many permits come back as would still
// be stored had they never been taken. The rest would have overflowed. No granted request is recalled, and no promised
// time becomes later.
//
// So when 100 callers queue at 10/s and all give up, in any order, the next one waits for one
// permit. At 10/s with 10 stored, Reserve(6), TryAcquire(4) and, 400 ms later, Cancel of the first leave
// 10 stored.
//
// Do not cancel permits that were used. golang.org/x/time/rate's Cancel does nothing once the time has come. This one
// gives the permits back, so a ported "defer r.Cancel()" would double the rate.
func (r *Reservation) Cancel() { r.Settle(0) }

// Settle says how many permits were really used. Cancel is Settle(0), and a negative number counts as 0. If fewer were
// used than reserved, the others are given back as by Cancel. A reservation whose time is still to come keeps its
// place. If more were used, the difference is charged behind all requests that wait. It is final: afterwards Cancel and
// Settle do nothing.
//
// At 10/s, a call that reserved 5 permits and settles at 25 makes the next one wait 2 s longer. One that settles at 1,
// before the next is granted, makes that wait 0.4 s less.
func (r *Reservation) Settle(actual int) {
	switch {
	case r.promise != nil:
		(*r.promise).Settle(actual)
		return
	case r.limiter == nil:
		return
	}
	l := r.limiter
	now := l.lock()
	defer l.mu.Unlock()
	l.settle(now, r, actual)
}

// at returns when the permits may be used. The limiter must be locked.
func (r *Reservation) at(now int64) int64 {
	if r.cancelled {
		return r.told
	}
	if ready, known := r.limiter.ledger.Ready(now, r.slot.Number); known {
		r.told = ready
	} else { // it was granted
		r.told = min(r.told, now)
	}
	return r.told
}

// settle settles a reservation of the limiter, which must be locked.
func (l *Limiter) settle(now int64, r *Reservation, actual int) {
	if r.settled {
		return
	}
	actual = max(0, actual)
	if actual > 0 || !l.waits(now, r.slot.Number) {
		r.at(now) // when it was granted, if it was: of a cancelled one the ledger knows nothing
	}
	r.settled, r.cancelled = true, actual == 0
	reserved := r.slot.Permits
	back := max(0, reserved-actual)
	if r.uncounted {
		r.uncounted = false
		l.granted += uint64(reserved - back)
	} else {
		l.cold.givenBack += uint64(back)
	}
	switch {
	case back > 0:
		l.ledger.Return(now, r.slot, actual)
		l.changed(now)
	case actual > reserved:
		l.ledger.Charge(now, actual-reserved)
		l.granted += uint64(actual - reserved)
	}
	if r.cancelled && r.sleepers > 0 {
		l.cold.sleepers.wake(r.slot.Number)
	}
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
