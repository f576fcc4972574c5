package reserve

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/isnil"
)

// A Reservation is a promise of permits at a known time. That becomes earlier when a request in front gives up or
// settles for less, and later only by a pause, a lower [Limiter.Retime], or a long use of a window's permits. At and
// Delay return the time as it is known now.
//
// A Reservation is returned by value, and must not be copied further (go vet reports it): a second Cancel must find the
// first. A function that returns it has a named result and a bare return. The zero value, which comes with an error,
// promises nothing. All methods may be called at the same time.
type Reservation engine.Reservation

func (r *Reservation) engine() *engine.Reservation { return (*engine.Reservation)(r) }

func (r *Reservation) Permits() int { return r.engine().Permits() }

// At returns when the permits may be used; after that time, the time last known. Do not sleep until At, which may
// change: use Wait.
func (r *Reservation) At() time.Time { return r.engine().At() }

// Delay returns how long it is until At; 0: now.
func (r *Reservation) Delay() time.Duration { return r.engine().Delay() }

// Wait blocks until the permits may be used. If the context ends first, or its deadline is before the time promised now
// (then at once, with a *[WaitError]), Wait gives them back and returns the cause. For a cancelled reservation it
// returns [ErrCancelled].
func (r *Reservation) Wait(ctx context.Context) error { return r.engine().Wait(ctx) }

// Cancel is Settle(0): the permits were not used. The limiter is then as if they had never been reserved. Before the
// reservation's time, all requests behind it move up; after it, as many permits come back as would still be stored. No
// promised time becomes later.
//
// When 100 callers queue at 10/s and all give up, in any order, the next caller waits for one permit.
//
// Do not cancel permits that were used, as golang.org/x/time/rate's callers do with "defer r.Cancel()": here it would
// double the rate.
func (r *Reservation) Cancel() { r.engine().Settle(0) }

// Settle says how many permits were really used (negative: 0). The rest of those reserved are given back as by Cancel,
// and a waiting reservation keeps its place. Permits used beyond are charged behind all requests that wait. Only the
// first Cancel or Settle counts.
//
// At 10/s, a call that reserved 5 permits and settles at 25 makes the next call wait 2 s longer. A granted request for
// more than a token bucket's capacity gets less back, or nothing: see pace.NewTokenBucket.
func (r *Reservation) Settle(actual int) { r.engine().Settle(actual) }

// A Promise implements a Reservation for a [Reserver] outside this package: see [NewReservation]. Its methods mean what
// the Reservation's do. A Delay of 0 lets the caller go: a promise that has only a forecast returns more.
type Promise = engine.Promise

// NewReservation returns a reservation that calls p, or panics if p is nil.
func NewReservation(p Promise) Reservation {
	if isnil.Value(p) {
		panic(valueError("NewReservation's promise", nil, "a promise"))
	}
	if u, ok := p.(embeds); ok {
		if _, own := p.(interface{ Begin() }); !own {
			p = wrapper{p, u}
		}
	}
	return Reservation(engine.NewReservation(p))
}

// embeds is what a promise has that embeds a Reservation and so stands in front of it.
type embeds interface {
	begin()
	end()
}

func (r *Reservation) begin() { r.engine().Begin() }
func (r *Reservation) end()   { r.engine().End() }

// A wrapper tells the Reservation that its promise embeds when the permits are used.
type wrapper struct {
	Promise
	of embeds
}

func (w wrapper) Begin() { w.of.begin() }
func (w wrapper) End()   { w.of.end() }
