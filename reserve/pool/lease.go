package pool

import (
	"context"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
)

// A Lease is a reservation at one of the members of a pool. It must not be copied after use. The zero value, which
// comes with an error, promises nothing. All methods may be called at the same time.
type Lease[T any] struct {
	place   *queue.Place
	members *members[T]
}

// Value returns the value of the member that serves the request. It is certain when Wait has returned. Before that it
// is the member that would serve it as things stand, or the zero value if others are in front.
func (l *Lease[T]) Value() (value T) {
	if i := l.Member(); i >= 0 {
		return l.members.list[i].Value
	}
	return value
}

// Member returns the number of that member in New's list; -1: there is none so far.
func (l *Lease[T]) Member() int {
	if l.place == nil {
		return -1
	}
	return l.place.Option()
}

// Permits returns the number of permits that were reserved.
func (l *Lease[T]) Permits() int {
	if l.place == nil {
		return 0
	}
	return l.place.Permits
}

// At returns when the permits may be used. It may become later if a member is paused, and earlier. While others are in
// front it is a forecast.
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

// Wait blocks until the permits may be used. If the context ends first it gives them back and returns the context's
// cause. It returns a *[reserve.WaitError] as soon as it is certain that they come too late.
func (l *Lease[T]) Wait(ctx context.Context) error {
	if l.place == nil {
		return reserve.ErrCancelled
	}
	return l.place.Wait(ctx)
}

// Cancel says that the permits were not used. It is Settle(0).
func (l *Lease[T]) Cancel() { l.Settle(0) }

// Settle says how many permits were really used: see [reserve.Reservation.Settle].
func (l *Lease[T]) Settle(actual int) {
	if l.place != nil {
		l.place.Settle(actual)
	}
}
