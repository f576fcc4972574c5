// Package limit is what a limit answers for itself, wherever it stands: alone, of a key, in a store, in flight, in a
// reserve.All, behind a queue, or a Reserver of the user's. Others call [Of] once, and ask the Limit.
//
// [Of] knows limiters, All, and a user's Reserver, which may have some methods of a limiter. Other types of this module
// implement [Limit] themselves. An exported type can't, since a user's type that embeds it would, too: its package
// calls [For].
package limit

import (
	"context"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/allornothing"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
)

// A Limit is a Reserver that answers for itself. All methods may be called at the same time. Only ReserveWithin, Take
// and Stop may block, and the others where Traits says so.
type Limit interface {
	// ReserveWithin takes all permits, or says when they could be taken, by a *reserve.WaitError. Its reservation
	// passes on when a use begins and ends.
	reserve.Reserver
	// Take is ReserveWithin for a caller that wants to know what is left. If used is true, a key's limiter takes less
	// memory.
	Take(ctx context.Context, n int, maxWait time.Duration, used bool) (Taken, error)
	// Peek returns how long a request for n permits, made now, would wait; 0 if the limit can't tell. Its error is a
	// *reserve.SizeError, or the user's.
	Peek(n int) (wait time.Duration, err error)
	// Outlook returns what the limit can grant now; false if it can't tell.
	Outlook() (o engine.Outlook, known bool)
	// Rate returns fresh permits per second; +Inf: there is no limit; 0: it is not known.
	Rate() float64
	// Tune sets the rate; waits scale with it. It does nothing where Traits says so, nor does Stop.
	Tune(permitsPerSecond float64)
	// Stop lets nothing go before t, because a server says so, in other processes that share the limit too.
	Stop(t time.Time)
	// Said says that a server has that many permits left until end.
	Said(left float64, end time.Time)
	// Name is the limit's, for errors; "": it has none.
	Name() string
	// Version changes with each change of the limit's times that is not a request's, nor time's. It is 0 where the
	// limit can't tell.
	Version() uint64
	Traits() Traits
}

// Traits are what a limit is like. They never change.
type Traits struct {
	Blocks   bool // to ask it may take a while, or calls a function of the user's
	Distant  bool // it is shared between processes: to reserve and to cancel takes a while
	Silent   bool // Outlook and Peek don't know
	Tunable  bool // Tune sets its rate
	Stops    bool // Stop holds the next request of this process, at the latest when Stop has returned
	InFlight bool // it bounds how many are out, not how many go in a time
}

type Taken struct {
	reserve.Reservation                // the zero value if they were taken for good
	Left                engine.Outlook // after that; the zero value: see Outlook
}

// Outlook returns what the limit can grant after the request; false for the zero Taken, and where it can't tell.
func (t *Taken) Outlook() (engine.Outlook, bool) {
	if l := (*engine.Reservation)(&t.Reservation).Limiter(); l != nil {
		return l.Latest(), true
	}
	return t.Left, t.Left.Rate > 0
}

// Of returns a Reserver as a Limit. It does not allocate for limiters, nor for what implements Limit.
func Of(by reserve.Reserver) Limit {
	switch by := by.(type) {
	case nil:
		return nil
	case *reserve.Limiter:
		return local{by}
	case Limit:
		return by
	}
	if of, ok := kinds.Load(reflect.TypeOf(by)); ok {
		return of.(func(reserve.Reserver) Limit)(by)
	}
	if parts := allornothing.PartsOf(by); parts != nil {
		return newAll(by, parts)
	}
	return foreign{Base{Reserver: by}}
}

var kinds sync.Map // of reflect.Type: func(reserve.Reserver) Limit

// For says what a Reserver of exactly that type is as a Limit.
func For[R reserve.Reserver](of func(R) Limit) bool {
	kinds.Store(reflect.TypeFor[R](), func(by reserve.Reserver) Limit { return of(by.(R)) })
	return true
}

type local struct{ *reserve.Limiter }

func (l local) engine() *engine.Limiter { return (*engine.Limiter)(l.Limiter) }

func (l local) Take(ctx context.Context, n int, maxWait time.Duration, _ bool) (Taken, error) {
	return taken(ctx, l.Limiter, n, maxWait)
}

func (l local) Outlook() (engine.Outlook, bool)  { return l.engine().Outlook(), true }
func (l local) Tune(permitsPerSecond float64)    { l.engine().Retime(permitsPerSecond) }
func (l local) Stop(t time.Time)                 { l.engine().Stop(t) }
func (l local) Said(left float64, end time.Time) { l.engine().Said(left, end) }
func (l local) Name() string                     { return l.engine().Name() }
func (l local) Version() uint64                  { return l.engine().Version() }
func (l local) Traits() Traits                   { return Traits{Tunable: true, Stops: true} }

// Local returns the limiter behind a Limit; nil if the limit is a key's, or not of this process.
func Local(l Limit) *reserve.Limiter {
	if l, ok := l.(local); ok {
		return l.Limiter
	}
	return nil
}

func Most(l Limit) float64 {
	if o, known := l.Outlook(); known && o.Capacity >= 1 {
		return o.Capacity
	}
	return 0
}

func Unlimited(l Limit) bool { return math.IsInf(l.Rate(), 1) }

// Finite returns a limit's rate; 0: it is not known, or there is none.
func Finite(l Limit) float64 {
	if rate := l.Rate(); rate < math.Inf(1) {
		return rate
	}
	return 0
}

// Begin says that the use of a reservation's permits begins: a server counts a call at some moment before its answer. A
// window counts the permits from Begin until its length after End. A quota by the calendar that begins meanwhile counts
// them too. Other limiters ignore both.
//
// Begin before the permits may be used does nothing, nor does a second Begin. Without an End, a Settle or a Cancel the
// permits don't come back.
func Begin(r *reserve.Reservation) { (*engine.Reservation)(r).Begin() }

// End says that the use of the permits is over; without Begin it is both at once.
func End(r *reserve.Reservation) { (*engine.Reservation)(r).End() }
