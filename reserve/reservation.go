package reserve

import (
	"context"
	"time"

	"github.com/nextfree/pace/smooth"
)

// A Reservation is a promise: so many permits, at a known time. Whoever got it may
// use the permits from then on, or else should Cancel it: then they are for others.
//
// It is returned by value and costs no allocation, but must not be copied further
// (go vet says so), so that a second Cancel finds the first. The zero value, which comes with
// an error, promises nothing. All methods may be called at the same time.
type Reservation struct {
	_       noCopy
	promise Promise // made elsewhere; nil where the limiter made it

	limiter *Limiter
	slot    smooth.Slot
	pause   *pause // the limiter's latest when the promise was made

	// Guarded by the limiter's lock.
	over     bool  // cancelled or settled
	sleepers int32 // in Wait
}

// A Promise is what a Reservation stands for, if a [Reserver] of one's own makes it:
// see [NewReservation]. Its methods mean what Reservation's do.
type Promise interface {
	Permits() int
	At() time.Time
	Delay() time.Duration
	Wait(ctx context.Context) error
	Cancel()
	Settle(actual int)
}

// NewReservation returns a reservation that stands for the given promise, for
// implementations of Reserver other than pace's.
func NewReservation(p Promise) Reservation { return Reservation{promise: p} }

// Permits returns the number of permits that were reserved.
func (r *Reservation) Permits() int {
	if r.promise != nil {
		return r.promise.Permits()
	}
	return r.slot.Permits
}

// At returns when the permits may be used. A pause of the limiter moves it, nothing else does.
func (r *Reservation) At() time.Time {
	switch {
	case r.promise != nil:
		return r.promise.At()
	case r.limiter == nil:
		return time.Time{}
	}
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	return r.limiter.policy.time(r.at())
}

// Delay returns how long it is from now until the permits may be used; never negative.
func (r *Reservation) Delay() time.Duration {
	switch {
	case r.promise != nil:
		return r.promise.Delay()
	case r.limiter == nil:
		return 0
	}
	now := r.limiter.policy.now()
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	return time.Duration(max(0, add(r.at(), -now)))
}

// Wait blocks until the permits may be used. If the context ends first it gives
// them back, as Cancel does, and returns the context's cause; if the context's
// deadline comes first, it does so at once and returns a *[WaitError]. Of a
// reservation that was cancelled or settled, before or meanwhile, it returns [ErrCancelled].
func (r *Reservation) Wait(ctx context.Context) error {
	switch {
	case r.promise != nil:
		return r.promise.Wait(ctx)
	case r.limiter == nil:
		return ErrCancelled
	}
	if err := ended(ctx); err != nil && r.cancel() {
		return err
	}
	_, err := r.limiter.sleep(ctx, r)
	return err
}

// Cancel says: "I have not used them." It can be called in any order, at any time;
// after the first Cancel or Settle it does nothing. No promised time moves.
//
//   - If nothing was reserved after it, it is as if it had never been.
//   - If its time is still to come, the next request that fits takes its place.
//   - If its time has come, its permits are stored again as soon as nobody waits any
//     more, as many as would still be stored if they had never been granted. (Of more than
//     1024 that come back at once and in disorder, it may be fewer.)
//
// So 100 callers that queue at 10/s and all give up leave the next one to wait for
// one permit, in whichever order they do.
func (r *Reservation) Cancel() { r.Settle(0) }

// cancel cancels a reservation of the limiter's own, and reports whether that was news.
func (r *Reservation) cancel() bool {
	now := r.limiter.lock()
	defer r.limiter.mu.Unlock()
	if r.over {
		return false
	}
	r.limiter.settle(now, r, 0)
	return true
}

// Settle says how many permits were really used; Cancel is Settle(0), and a
// negative number counts as 0. What was too much is given back as by Cancel; what
// was missing is charged to the next callers. It is final: afterwards Cancel and Settle do nothing.
//
// At 10/s, a call that reserved 5 permits and settles at 25 makes the next one wait
// 2 s longer.
func (r *Reservation) Settle(actual int) {
	switch {
	case r.promise != nil:
		r.promise.Settle(actual)
		return
	case r.limiter == nil:
		return
	}
	l := r.limiter
	now := l.lock()
	defer l.mu.Unlock()
	l.settle(now, r, actual)
}

// at returns when the permits may be used, in real time. The limiter must be locked.
func (r *Reservation) at() int64 { return r.pause.real(r.slot.Ready) }

// settle settles a reservation of the limiter, which must be locked.
func (l *Limiter) settle(now int64, r *Reservation, actual int) {
	if r.over {
		return
	}
	r.over = true
	switch reserved := r.slot.Permits; {
	case actual < reserved:
		due := r.at() <= l.seen
		l.ledger.Return(now, r.slot, reserved-max(0, actual), due)
	case actual > reserved:
		l.ledger.Charge(now, actual-reserved)
	}
	if r.sleepers > 0 {
		l.wakeSleepers()
	}
}

// noCopy makes go vet report copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
