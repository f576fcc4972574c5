package outbound

import (
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// spaced yields the charges whose calls a second limiter spaces, each with the place of that in asks.
func (w *way) spaced(yield func(at int, a *charge) bool) {
	at := len(w.charges) + len(w.seats)
	for i := range w.charges {
		if a := &w.charges[i]; a.even != nil {
			if !yield(at, a) {
				return
			}
			at++
		}
	}
}

// spaces is how many spaced yields.
func (w *way) spaces() (n int) {
	for range w.spaced {
		n++
	}
	return n
}

// A spacedPromise is a limit's reservation. That of the limiter that spaces its calls is settled with it.
type spacedPromise struct {
	*reserve.Reservation
	even *reserve.Reservation
}

func together(limit, even *reserve.Reservation) *reserve.Reservation {
	r := reserve.NewReservation(spacedPromise{limit, even})
	return &r
}

func (p spacedPromise) Begin() { lim.Begin(p.Reservation) }
func (p spacedPromise) End()   { lim.End(p.Reservation) }

func (p spacedPromise) Cancel() { p.Settle(0) }

func (p spacedPromise) Settle(actual int) {
	p.Reservation.Settle(actual)
	p.even.Settle(actual)
}
