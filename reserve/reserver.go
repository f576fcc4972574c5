package reserve

import (
	"context"
	"math"
	"time"
)

// Forever is a wait without limit.
const Forever time.Duration = math.MaxInt64

// A Reserver can promise permits: a [Limiter], [All] of several, a key's limiter, a limiter shared between machines.
type Reserver interface {
	// ReserveWithin reserves n permits (at least 1) if they can be used within maxWait. If not, it takes nothing and
	// returns a *WaitError.
	ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (Reservation, error)
}

// Acquire is [Limiter.Acquire] for any Reserver. A nil Reserver panics.
func Acquire(ctx context.Context, r Reserver, n int) (waited time.Duration, err error) {
	if r == nil {
		panic("pace: Acquire of a nil Reserver")
	}
	if l, ok := r.(*Limiter); ok {
		return l.Acquire(ctx, n)
	}
	reservation, err := r.ReserveWithin(ctx, n, Forever)
	if err != nil {
		return 0, err
	}
	return reservation.engine().Await(ctx)
}
