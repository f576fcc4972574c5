package reserve

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/smooth"
)

// A Reservation is a promise: so many permits, at a known time. The caller may use them
// from then on, or else should Cancel it: then they are for others.
//
// The time may become earlier, when somebody in front gives up or has used less than it
// reserved; it becomes later only by a pause or a lower [Limiter.Retime]. At and Delay say the
// present one, and Wait ends at it.
//
// A Reservation is returned by value and costs no allocation, but must not be copied further
// (go vet says so), so that a second Cancel finds the first. The zero value, which comes with
// an error, promises nothing. All methods may be called at the same time.
type Reservation struct {
	_       noCopy
	promise *Promise // made elsewhere; nil where the limiter made it

	limiter *Limiter
	slot    smooth.Slot

	// Guarded by the limiter's lock.
	told      int64 // the last time that was told, a reading of its clock
	sleepers  int32 // in Wait
	settled   bool
	cancelled bool // settled at 0
	uncounted bool // not in granted so far: see reserveUncounted
}

// Permits returns the number of permits that were reserved.
func (r *Reservation) Permits() int {
	if r.promise != nil {
		return (*r.promise).Permits()
	}
	return r.slot.Permits
}

// At returns when the permits may be used, by what is known now; after that, the last time that was
// known before they could be. A caller that sleeps by At itself should ask again, or use Wait.
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

// Wait blocks until the permits may be used. If the context ends first it gives
// them back, as Cancel does, and returns the context's cause; if the context's
// deadline comes before the time that is promised now, it does so at once and returns a
// *[WaitError]. Of a reservation that was cancelled, before or meanwhile, it returns [ErrCancelled].
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

// Cancel says: "I have not used them." It can be called in any order, at any time;
// after the first Cancel or Settle it does nothing. It is Settle(0).
//
// The limiter is then what it would be had it known from the start. If its time is still to come,
// all behind it move up. If it has come, the store is what it would be had the
// permits never been taken; what would have overflowed is lost.
// Nobody who has gone is called back, and no promised time becomes later.
//
// So 100 callers that queue at 10/s and all give up leave the next one to wait for
// one permit, in whichever order they do. At 10/s with 10 stored, Reserve(6), TryAcquire(4) and,
// 400 ms later, Cancel of the first leave 10 stored.
//
// It is for permits that were not used. Where golang.org/x/time/rate does nothing once the time has
// come, this gives back: a ported "defer r.Cancel()" would double the rate.
func (r *Reservation) Cancel() { r.Settle(0) }

// Settle says how many permits were really used; Cancel is Settle(0), and a
// negative number counts as 0. If they are fewer than were reserved, the rest is given back as by
// Cancel, and before its time the reservation keeps its place; if they are more, the difference is
// charged behind all that wait. It is final: afterwards Cancel and Settle do nothing.
//
// At 10/s, a call that reserved 5 permits and settles at 25 makes the next one wait
// 2 s longer; one that settles at 1 before the next has gone, 0.4 s less.
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
	} else { // it has gone
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
