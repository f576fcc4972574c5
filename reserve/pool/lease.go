package pool

import (
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
)

// A Lease is a reservation at a member of a pool. Its At and Delay are a forecast, and may change. If the permits
// certainly come too late, Wait returns a *[reserve.WaitError]. It must not be copied after use. The zero value
// promises nothing. All methods may be called at the same time.
type Lease[T any] struct {
	reserve.Reservation
	place   *queue.Place
	members *members[T]
}

// Value returns the value of the member that serves the request; until Wait has returned it may change, or be the zero
// value.
func (l *Lease[T]) Value() (value T) {
	if i := l.Member(); i >= 0 {
		return l.members.list[i].Value
	}
	return value
}

// Member returns that member's number in New's list, or -1.
func (l *Lease[T]) Member() int {
	if l.place == nil {
		return -1
	}
	return l.place.Option()
}
