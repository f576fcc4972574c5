// Package attime asks limiters at times that the caller brings along, instead of those of the limiter's clock. It is
// for adapters to interfaces that pass the time, such as golang.org/x/time/rate's AllowN(t, n). It is a public package
// because a program may put the module reserve/plug/xtime in the place of golang.org/x/time, and under that name it
// can't import pace's internal packages.
//
// A time before the latest that a limiter has seen, by any of its methods, counts as the latest. So a clock that steps
// back gives no permits twice. A time that is ahead of the limiter's clock brings permits from the future. Until the
// clock is there, it stands still for this limiter.
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

// valueError makes the error for a bad value.
var valueError = invalid.In("pace")

// New returns a limiter of the policy that begins before all times that a caller may bring: 146 years before now. A
// token bucket is full then. A bursty limiter has been idle for so long.
func New(p *reserve.Policy) *reserve.Limiter {
	return (*reserve.Limiter)((*engine.Policy)(p).New(math.MinInt64 / 2))
}

// Take is TryAcquire at time t: it takes n permits (at least 1) if they may be used at t, and reports whether it did.
func Take(l *reserve.Limiter, t time.Time, n int) bool { return (*engine.Limiter)(l).TakeAt(t, n) }

// Reserve is ReserveWithin at time t, without a context. R must be new. It gets the reservation.
func Reserve(l *reserve.Limiter, t time.Time, n int, maxWait time.Duration, r *reserve.Reservation) error {
	if n < 1 {
		return valueError("permits", n, "at least 1")
	}
	return (*engine.Limiter)(l).ReserveAt(t, n, maxWait, (*engine.Reservation)(r))
}

// Ready is the reservation's At, by what is known at time t. The reservation must be one of [Reserve].
func Ready(r *reserve.Reservation, t time.Time) time.Time {
	return (*engine.Reservation)(r).ReadyAt(t)
}

// Settle is the reservation's Settle at time t. Settle(r, t, 0) is its Cancel. The reservation must be one of
// [Reserve].
func Settle(r *reserve.Reservation, t time.Time, actual int) {
	(*engine.Reservation)(r).SettleAt(t, actual)
}

// Level returns how many permits are stored at time t. While any are owed it is negative: see [reserve.Snapshot].
func Level(l *reserve.Limiter, t time.Time) float64 { return (*engine.Limiter)(l).LevelAt(t) }

// Replace is SetPolicy at time t, and the waits of waiting requests scale with the rate, as with Retime. For a policy
// of another kind it returns a *[reserve.ValueError] and changes nothing.
func Replace(l *reserve.Limiter, t time.Time, p *reserve.Policy) error {
	if want := (*engine.Limiter)(l).ReplaceAt(t, (*engine.Policy)(p)); want != "" {
		return valueError("Replace's policy", p, want)
	}
	return nil
}
