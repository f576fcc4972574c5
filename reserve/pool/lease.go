package pool

import (
	"context"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
)

// A Lease is a reservation at a member of a pool. It must not be copied after use. The zero value promises nothing. All
// methods may be called at the same time.
type Lease[T any] struct {
	place   *queue.Place
	members *members[T]
}

// Value returns the value of the member that serves the request. It may change until Wait has returned; it is the zero
// value while others are in front.
func (l *Lease[T]) Value() (value T) {
	if i := l.Member(); i >= 0 {
		return l.members.list[i].Value
	}
	return value
}

// Member returns that member's number in New's list; -1: none so far.
func (l *Lease[T]) Member() int {
	if l.place == nil {
		return -1
	}
	return l.place.Option()
}

// Permits returns how many permits were reserved.
func (l *Lease[T]) Permits() int {
	if l.place == nil {
		return 0
	}
	return l.place.Permits
}

// At returns when the permits may be used. It may change; while others are in front it is a forecast.
func (l *Lease[T]) At() time.Time {
	if l.place == nil {
		return time.Time{}
	}
	return l.place.At()
}

// Delay returns how long it is until At; never negative.
func (l *Lease[T]) Delay() time.Duration {
	if l.place == nil {
		return 0
	}
	return l.place.Delay()
}

// Wait blocks until the permits may be used. If the context ends first, it gives them back and returns the cause. If
// they certainly come too late, it returns a *[reserve.WaitError].
func (l *Lease[T]) Wait(ctx context.Context) error {
	if l.place == nil {
		return reserve.ErrCancelled
	}
	return l.place.Wait(ctx)
}

// Cancel is Settle(0).
func (l *Lease[T]) Cancel() { l.Settle(0) }

// Settle says how many permits were used: see [reserve.Reservation.Settle].
func (l *Lease[T]) Settle(actual int) {
	if l.place != nil {
		l.place.Settle(actual)
	}
}
