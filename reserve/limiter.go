package reserve

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/engine"
)

// A Limiter hands out permits at a rate. Most callers should use [Limiter.Acquire], which waits for them.
// [Limiter.TryAcquire] never blocks, and [Limiter.Reserve] is for callers that do something else meanwhile.
//
// Requests go in order, and any size is granted (a window has a largest: see [SizeError]). Unless the policy has
// [PayUpfront], a request goes as soon as the requests before it are paid for: at 1/s, Acquire(8) goes at once, and the
// next Acquire(1) 8 s later. When a request gives up, or settles for less, those behind it go earlier.
//
// Its zero value and nil panic; it must not be copied. All methods may be called at the same time.
type Limiter engine.Limiter

func (l *Limiter) engine() *engine.Limiter { return (*engine.Limiter)(l).Made() }

// Acquire waits for n permits (at least 1), and returns how long that took. If they would come after the context's
// deadline or the policy's longest wait, it takes nothing and returns a *[WaitError] at once. If the context ends, it
// returns the cause, and gives the permits back.
func (l *Limiter) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	if err := checkPermits(n); err != nil {
		return 0, err
	}
	return (*engine.Limiter)(l).Acquire(ctx, n)
}

// TryAcquire takes n permits if they may be used now, and reports whether it did. For n < 1 it returns false. It
// neither blocks nor allocates.
//
// Do not poll a warming-up limiter: while it grants nothing it cools. Use Acquire.
func (l *Limiter) TryAcquire(n int) bool { return (*engine.Limiter)(l).TryAcquire(n) }

// Wait is Acquire(ctx, 1), in the form that many clients take.
func (l *Limiter) Wait(ctx context.Context) error {
	_, err := (*engine.Limiter)(l).Acquire(ctx, 1)
	return err
}

// Allow is TryAcquire(1).
func (l *Limiter) Allow() bool { return (*engine.Limiter)(l).TryAcquire(1) }

// TakeUpTo takes as many of n permits as there are now, and returns how many: for work in batches. It neither blocks
// nor allocates. Permits beyond those do not count as refused.
//
// At 10/s with 5 stored, TakeUpTo(100) returns 6, since the next permit is prepaid; with [PayUpfront] 5.
func (l *Limiter) TakeUpTo(n int) (taken int) { return l.engine().TakeUpTo(n) }

// Reserve is ReserveWithin(ctx, n, Forever): it refuses only for the deadline of ctx or [WithMaxWait].
func (l *Limiter) Reserve(ctx context.Context, n int) (r Reservation, err error) {
	if err = checkPermits(n); err == nil {
		err = l.engine().Reserve(ctx, n, Forever, r.engine())
	}
	return
}

// ReserveWithin reserves n permits (at least 1) if they may be used within maxWait (negative: 0), the policy's longest
// wait and the context's deadline. Otherwise it takes nothing and returns a *[WaitError], or the cause of a context
// that is done. It neither blocks nor allocates.
func (l *Limiter) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (r Reservation, err error) {
	if err = checkPermits(n); err == nil {
		err = l.engine().Reserve(ctx, n, maxWait, r.engine())
	}
	return
}
