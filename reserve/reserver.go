package reserve

import (
	"context"
	"math"
	"time"

	"github.com/nextfree/pace/internal/isnil"
)

// Forever is a wait without limit.
const Forever time.Duration = math.MaxInt64

// A Reserver can promise permits: a [Limiter], [All] of several, a key's limiter, a limiter shared
// between machines.
type Reserver interface {
	// ReserveWithin reserves n permits (at least 1) if they can be used within maxWait. If not, it takes
	// nothing and returns a *WaitError.
	ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (Reservation, error)
}

// Acquire waits for n permits of any Reserver, as [Limiter.Acquire] does for a
// limiter's, and returns how long that took.
func Acquire(ctx context.Context, r Reserver, n int) (waited time.Duration, err error) {
	if l, ok := r.(*Limiter); ok {
		return l.Acquire(ctx, n)
	}
	reservation, err := r.ReserveWithin(ctx, n, Forever)
	if err != nil {
		return 0, err
	}
	return await(ctx, &reservation)
}

// await waits for a reservation, and returns how long that took.
func await(ctx context.Context, r *Reservation) (waited time.Duration, err error) {
	at, wait := r.At(), r.Delay()
	if wait == 0 {
		return 0, nil
	}
	err = r.Wait(ctx)
	wait += r.At().Sub(at) // it may have moved meanwhile
	return max(0, wait-r.Delay()), err
}

// A Promise is the implementation of a Reservation by a [Reserver] outside this package: see
// [NewReservation]. Its methods mean what Reservation's methods do.
type Promise interface {
	Permits() int
	At() time.Time
	Delay() time.Duration
	Wait(ctx context.Context) error
	Cancel()
	Settle(actual int)
}

// NewReservation returns a reservation whose methods call the promise's, for implementations of Reserver. It
// panics if p is nil.
func NewReservation(p Promise) Reservation {
	if isnil.Value(p) {
		panic(valueError("NewReservation's promise", nil, "a promise"))
	}
	return Reservation{promise: &p}
}
