// Package hooks goes: convert to package engine, see there. It lets packages below reserve use its unexported methods, as google.golang.org/grpc/internal
// does.
//
// Those packages import reserve, so reserve can't import them, and exported methods would be in every user's API. So
// reserve registers its [Hooks] here when it is initialized, and those packages open them:
//
//	var engine = hooks.Open[*reserve.Policy, *reserve.Limiter, *reserve.Reservation]()
package hooks

import (
	"context"
	"iter"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/smooth"
)

// These types are package engine's.
type (
	Clock   = engine.Clock
	Terms   = engine.Terms
	Outlook = engine.Outlook
	Fresh   = engine.Fresh
)

// Hooks are unexported methods of reserve's types. P is *reserve.Policy, L is *reserve.Limiter, R is
// *reserve.Reservation. Times are readings of the policy's clock.
type Hooks[P, L, R any] struct {
	// Terms returns the terms of a policy.
	Terms func(P) *Terms
	// Check returns the error that a limiter of the policy in that state would return to
	// ReserveWithin.
	Check func(ctx context.Context, p P, state *smooth.State, n int, maxWait time.Duration) error

	// New returns a limiter that has had no request since begin, and Grow one with that ledger.
	New  func(p P, begin int64) L
	Grow func(p P, now int64, ledger smooth.Ledger) L
	// Fresh returns the present state of a limiter that has had no request since begin.
	Fresh func(p P, begin, now int64) Fresh
	// Like reports whether a limiter is in that state.
	Like func(l L, fresh Fresh) bool
	// Retire invalidates a limiter if it is in that state, so that its key can be dropped, and reports
	// whether it did. Later refunds are lost (the store was full without them). Later charges go to
	// charge, which is called under the limiter's lock.
	Retire func(l L, fresh Fresh, charge func(permits int)) bool
	// Supersede has a limiter's later charges go to charge, as Retire does, in whatever state it is: another
	// limiter takes its place. Requests that wait keep their times.
	Supersede func(l L, charge func(permits int))

	// Charge takes permits (at least 1) that were used already.
	Charge func(l L, permits int)
	// Stop is PauseUntil, for a server that refuses: a window's clock does not stop, because the
	// server's does not.
	Stop func(l L, t time.Time)
	// Wait returns how long a request for permits (at least 1), made now, would wait. It returns a SizeError if that is
	// larger than the limiter ever grants. It takes nothing.
	Wait func(l L, permits int) (time.Duration, error)
	// Behind is Wait for a request behind others. It returns how long a request for n permits (at least 1) would wait, if
	// requests of the sizes ahead (each at least 1; nil: none) were made now, in that order, and it after them. Requests
	// that wait already are in front of all of these.
	//
	// It takes nothing: the ledger works it out under the limiter's lock, so no other request sees
	// it, and Snapshot counts nothing. WithMaxWait and deadlines do not apply: compare the result
	// with them. A saturated result (about 292 years) means never.
	//
	// Of smooth's limiters only the sum of the sizes matters, so one element with the sum gives the same result in less
	// time. Of a window the sizes matter. With 10 a second and none used, behind 6, 6 and 6 a request for 4 waits 2 s.
	// Behind 18 requests for 1 it waits 1 s. It takes time in proportion to the number of sizes. A size beyond the window
	// counts as a request for the whole window that is then settled at that size. If n is beyond the window, Behind
	// returns a SizeError.
	//
	// Ahead runs under the limiter's lock: it must not call the limiter. If a ledger that is neither smooth's nor a
	// window's can't tell, the result is for one request for all permits together, which is not earlier.
	Behind func(l L, ahead iter.Seq[int], n int) (time.Duration, error)
	// RefuseBehind returns the error that ReserveWithin would return to a request behind others, as in Behind, and counts
	// it as a refusal. It returns nil if such a request would be granted. It takes nothing.
	RefuseBehind func(ctx context.Context, l L, ahead iter.Seq[int], n int, maxWait time.Duration) error
	// ReserveUncounted is ReserveWithin into r, for a caller that will probably give it back: Snapshot counts
	// its permits as granted only when Count is called, and a Cancel before that counts nothing.
	// A Settle before it counts what was used. If it is refused, that counts as any refusal does.
	ReserveUncounted func(ctx context.Context, l L, n int, maxWait time.Duration, r R) error
	// Count counts the permits of a reservation by ReserveUncounted as granted. For any other reservation, and
	// the second time, it does nothing.
	Count func(R)
	// Outlook returns what the limiter can grant now. It takes nothing, and does not allocate unless the rate was changed.
	// Latest is the same as of the latest request, for the caller that has just made it. Reading the clock again would
	// cost more than everything else.
	Outlook, Latest func(L) Outlook
	// Await waits for a reservation and returns how long that took.
	Await func(ctx context.Context, r R) (waited time.Duration, err error)
	// Watch has f called whenever promised times may have changed for another reason than that time passes. They may be
	// earlier after a Cancel, a Settle for less, SetRate, SetPolicy or Resume, and later (true) after a pause, a stop or
	// Retime. It is called under the limiter's lock, so it must not call the limiter, nor block. The limiter drops f once
	// that returns false.
	Watch func(l L, f func(later bool) (keep bool))
	// Parts returns the reservers of an All, and nil for any other reserver.
	Parts func(r any) []any
	// Promise returns what NewReservation got, and nil for a limiter's reservation.
	Promise func(R) any

	// Ledger returns a ledger (a reserve.Ledger) for a policy that is not smooth's. It is a new limiter's, or made of what
	// AppendState of another has saved then. Wall returns what the wall clock shows at a time of the limiter's.
	Ledger func(p P, saved []byte, then int64, wall func(t int64) time.Time) (any, error)
	// Kind returns the package of a policy's variant, and what errors call its limiters.
	Kind func(P) (pkg, limiter string)

	// Said tells a quota by the calendar what a server says: so many permits are left until then. It does nothing for
	// other limiters.
	Said func(l L, left float64, end time.Time)
}

// On returns the clock c.
func On(c clockwork.Clock) Clock { return engine.On(c) }

var opened any // the *Hooks that reserve registered

// Register registers the hooks. Only reserve calls it.
func Register[P, L, R any](e *Hooks[P, L, R]) { opened = e }

// Open returns reserve's hooks, to a package that imports reserve.
func Open[P, L, R any]() *Hooks[P, L, R] { return opened.(*Hooks[P, L, R]) }
