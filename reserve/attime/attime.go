// Package attime asks limiters at times that the caller brings, instead of those of the limiter's clock. It is for
// adapters to interfaces that pass the time, such as golang.org/x/time/rate's AllowN(t, n). It is public because the
// module reserve/plug/xtime, which may stand in for golang.org/x/time, can't import pace's internal packages then.
//
// A time before the latest that a limiter has seen, by any of its methods, counts as the latest. A time ahead of the
// limiter's clock brings permits from the future; until the clock is there, it stands still for this limiter.
//
// All functions may be called at the same time. They panic if the limiter is nil.
package attime

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("pace")

// New returns a limiter that begins 146 years before now, so before all times that callers bring: full, or long idle.
func New(p *reserve.Policy) *reserve.Limiter {
	return (*reserve.Limiter)((*engine.Policy)(p).New(math.MinInt64 / 2))
}

// Take is TryAcquire at time t: it takes n permits (at least 1) if they may be used at t, and reports whether it did.
func Take(l *reserve.Limiter, t time.Time, n int) bool { return (*engine.Limiter)(l).TakeAt(t, n) }

// Reserve is ReserveWithin at time t, without a context. It stores the reservation in r, which must be new.
func Reserve(l *reserve.Limiter, t time.Time, n int, maxWait time.Duration, r *reserve.Reservation) error {
	if n < 1 {
		return valueError("permits", n, "at least 1")
	}
	return (*engine.Limiter)(l).ReserveAt(t, n, maxWait, (*engine.Reservation)(r))
}

// Ready is the At, by what is known at time t, of a reservation made by [Reserve].
func Ready(r *reserve.Reservation, t time.Time) time.Time {
	return (*engine.Reservation)(r).ReadyAt(t)
}

// Settle is Settle at time t, of a reservation made by [Reserve]; 0 cancels it.
func Settle(r *reserve.Reservation, t time.Time, actual int) {
	(*engine.Reservation)(r).SettleAt(t, actual)
}

// Level is [reserve.Snapshot]'s Level at time t.
func Level(l *reserve.Limiter, t time.Time) float64 { return (*engine.Limiter)(l).LevelAt(t) }

// Replace is SetPolicy at time t, and the waits of waiting requests scale with the rate, as with Retime. For a policy
// of another kind it returns a *[reserve.ValueError] and changes nothing.
func Replace(l *reserve.Limiter, t time.Time, p *reserve.Policy) error {
	if want := (*engine.Limiter)(l).ReplaceAt(t, (*engine.Policy)(p)); want != "" {
		return valueError("Replace's policy", p, want)
	}
	return nil
}
