package rate

import (
	"math"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/attime"
)

// bodyOf returns the limiter of pace that does the work, or nil in a strict program.
func (lim *Limiter) bodyOf() *reserve.Limiter {
	if body := lim.body.Load(); body != nil {
		return body
	}
	lim.mu.Lock()
	defer lim.mu.Unlock()
	switch {
	case Strict && !lim.begun:
		lim.begun, lim.tokens = true, float64(lim.burst)
	case !Strict && lim.body.Load() == nil:
		lim.body.Store(attime.New(lim.policy()))
	}
	return lim.body.Load()
}

// policy returns what limit and burst are to pace.
func (lim *Limiter) policy() *reserve.Policy {
	perSecond := float64(lim.limit)
	switch {
	case lim.limit == Inf:
		perSecond = math.Inf(1)
	case !(perSecond > 0): // no token ever: one in longer than pace counts
		perSecond = 1e-12
	}
	return pace.Must(pace.TokenBucket(perSecond, float64(max(0, lim.burst))))
}

// A Reservation says when events may happen that were reserved. Cancel it if they don't.
type Reservation struct {
	ok        bool
	timeToAct time.Time
	lim       *Limiter
	tokens    int
	limit     Limit // then; of a strict limiter

	promise reserve.Reservation // of a limiter of pace
	bound   bool                // there is a promise
}

// reserveN is ReserveN within a longest wait, for wait and for golang.org/x/time/rate's tests.
func (lim *Limiter) reserveN(t time.Time, n int, maxFutureReserve time.Duration) (r Reservation) {
	lim.reserve(t, n, maxFutureReserve, &r)
	return
}

// reserve fills in the reservation.
func (lim *Limiter) reserve(t time.Time, n int, most time.Duration, r *Reservation) {
	body := lim.bodyOf()
	if body == nil {
		lim.strictly(t, n, most, r)
		return
	}
	r.lim, r.tokens = lim, n
	lim.mu.Lock()
	limit, burst := lim.limit, lim.burst
	lim.mu.Unlock()
	switch {
	case limit == Inf:
		r.ok, r.timeToAct = true, t
	case n > burst:
	case n <= 0: // it takes nothing, but waits for what is owed
		owed := max(0, -attime.Level(body, t))
		wait := limit.durationFromTokens(owed)
		if owed == 0 {
			wait = 0
		}
		r.ok, r.timeToAct = wait <= most, t.Add(wait)
	default:
		if attime.Reserve(body, t, n, most, &r.promise) == nil {
			r.ok, r.bound = true, true
			r.timeToAct = attime.Ready(&r.promise, t)
		}
	}
}

// OK reports whether there will be a time for the events. If not, Delay is InfDuration and Cancel does nothing.
func (r *Reservation) OK() bool { return r.ok }

// Delay returns how long it is from now until the events may happen: 0 if they may already, and InfDuration if the
// reservation is not OK. It becomes less when reservations in front of this one are cancelled.
func (r *Reservation) Delay() time.Duration { return r.DelayFrom(time.Now()) }

// DelayFrom is Delay from time t.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.ok {
		return InfDuration
	}
	when := r.timeToAct
	if r.bound {
		when = attime.Ready(&r.promise, t)
	}
	return max(0, when.Sub(t))
}

// Cancel says that the events do not happen. Whatever of their tokens would still be there comes back, also after their
// time, and events that wait behind them move up. Cancel only what was not used: a deferred Cancel would give back all
// that it guards.
func (r *Reservation) Cancel() { r.CancelAt(time.Now()) }

// CancelAt is Cancel at time t.
func (r *Reservation) CancelAt(t time.Time) {
	switch {
	case !r.ok:
	case r.bound:
		attime.Settle(&r.promise, t, 0)
	case r.lim.bodyOf() == nil:
		r.cancelStrictly(t)
	}
}
