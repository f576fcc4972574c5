package rate

import (
	"math"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/attime"
)

// A working limiter is pace's, and what it was made of.
type working struct {
	*reserve.Limiter
	limit Limit
	burst int
}

// bodyOf returns the limiter of pace that does the work, or nil in a strict program.
func (lim *Limiter) bodyOf() *working {
	if body := lim.body.Load(); body != nil {
		return body
	}
	lim.mu.Lock()
	defer lim.mu.Unlock()
	switch {
	case Strict && !lim.begun:
		lim.begun, lim.tokens = true, float64(lim.burst)
	case !Strict && lim.body.Load() == nil:
		lim.body.Store(&working{attime.New(lim.policy()), lim.limit, lim.burst})
	}
	return lim.body.Load()
}

func (lim *Limiter) policy() *reserve.Policy {
	perSecond := float64(lim.limit)
	switch {
	case lim.limit == Inf:
		perSecond = math.Inf(1)
	case !(perSecond > 0):
		perSecond = 0
	}
	burst := float64(max(0, lim.burst))
	perSecond = max(perSecond, 1e-12, burst/slowest) // no token ever: one in a lifetime
	return pace.Must(pace.TokenBucket(perSecond, burst))
}

// A Reservation says when events may happen that were reserved. Cancel it if they don't.
type Reservation struct {
	ok       bool
	bound    bool                // there is a promise
	promise  reserve.Reservation // of a limiter of pace
	*settled                     // if there is no promise
}

// A settled time does not change any more.
type settled struct {
	timeToAct time.Time

	strict *Limiter // a strict limiter, from which tokens were taken at a limit; otherwise nil
	tokens int
	limit  Limit
}

// reserveN is ReserveN within a longest wait, for wait and for golang.org/x/time/rate's tests, which read timeToAct.
func (lim *Limiter) reserveN(t time.Time, n int, maxFutureReserve time.Duration) (r Reservation) {
	lim.reserve(t, n, maxFutureReserve, &r)
	switch {
	case r.bound:
		r.settled = &settled{timeToAct: attime.Ready(&r.promise, t)}
	case !r.ok:
		r.settled = new(settled)
	}
	return
}

func (lim *Limiter) reserve(t time.Time, n int, most time.Duration, r *Reservation) {
	body := lim.bodyOf()
	switch {
	case body == nil:
		lim.strictly(t, n, most, r)
	case body.limit == Inf:
		r.ok, r.settled = true, &settled{timeToAct: t}
	case n > body.burst:
	case n <= 0: // it takes nothing, but waits for what is owed
		owed := max(0, -attime.Level(body.Limiter, t))
		wait := body.limit.durationFromTokens(owed)
		if owed == 0 {
			wait = 0
		}
		r.ok, r.settled = wait <= most, &settled{timeToAct: t.Add(wait)}
	default:
		r.bound = attime.Reserve(body.Limiter, t, n, most, &r.promise) == nil
		r.ok = r.bound
	}
}

// OK reports whether there will be a time for the events. If not, Delay is InfDuration and Cancel does nothing.
func (r *Reservation) OK() bool { return r.ok }

// Delay returns how long it is from now until the events may happen. It is 0 if they may already, and InfDuration if
// the reservation is not OK. It becomes less when reservations in front of this one are cancelled.
func (r *Reservation) Delay() time.Duration { return r.DelayFrom(time.Now()) }

// DelayFrom is Delay from time t.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.ok {
		return InfDuration
	}
	if r.bound {
		return max(0, attime.Ready(&r.promise, t).Sub(t))
	}
	return max(0, r.timeToAct.Sub(t))
}

// Cancel says that the events do not happen. Whatever of their tokens would still be there comes back, also after their
// time, and events that wait behind them move up. Cancel only what was not used: a deferred Cancel would give back all
// that it guards.
func (r *Reservation) Cancel() { r.CancelAt(time.Now()) }

// CancelAt is Cancel at time t.
func (r *Reservation) CancelAt(t time.Time) {
	switch {
	case r.bound:
		attime.Settle(&r.promise, t, 0)
	case r.ok && r.strict != nil:
		r.cancelStrictly(t)
	}
}

// slowest is how many seconds a bucket may take to fill at most: 142 years. Pace refuses slower ones.
const slowest = 4.5e9
