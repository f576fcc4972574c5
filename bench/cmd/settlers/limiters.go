package main

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"
	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// paceLimiter is pace's, on a fake clock.
type paceLimiter struct {
	*reserve.Limiter
	clock *clockwork.FakeClock
	begin time.Time
}

func newPace(l load) limiter {
	clock := clockwork.NewFakeClock()
	return paceLimiter{
		Limiter: reserve.Must(pace.NewBursty(permitsPerSecond, pace.WithBurst(l.saved), reserve.WithClock(clock))),
		clock:   clock,
		begin:   clock.Now(),
	}
}

func (p paceLimiter) set(now time.Duration) { p.clock.Advance(now - p.clock.Since(p.begin)) }

func (p paceLimiter) reserve(now time.Duration, permits int) promise {
	p.set(now)
	made := &pacePromise{by: p}
	made.Reservation = reserve.Must(p.Reserve(context.Background(), permits))
	return made
}

type pacePromise struct {
	reserve.Reservation
	by paceLimiter
}

func (p *pacePromise) at(now time.Duration) time.Duration {
	p.by.set(now)
	return p.At().Sub(p.by.begin)
}

func (p *pacePromise) settle(now time.Duration, actual int) {
	p.by.set(now)
	p.Settle(actual)
}

// xtimeLimiter is x/time/rate's. It has no way to settle. Permits that were too many are given back by reserving a
// negative number, which it does not forbid. That shortens the waits of later callers only.
type xtimeLimiter struct {
	*rate.Limiter
	begin time.Time
}

// newXTime has a burst that lets as much go at one moment as pace does: what is stored, and a
// call more. It begins empty, as pace's does.
func newXTime(l load) limiter {
	x := xtimeLimiter{rate.NewLimiter(permitsPerSecond, int(l.store())+l.reserves), time.Unix(0, 0)}
	x.ReserveN(x.begin, int(l.store()))
	return x
}

func (x xtimeLimiter) reserve(now time.Duration, permits int) promise {
	t := x.begin.Add(now)
	return xtimePromise{x, permits, now + x.ReserveN(t, permits).DelayFrom(t)}
}

type xtimePromise struct {
	by      xtimeLimiter
	permits int
	ready   time.Duration
}

func (p xtimePromise) at(time.Duration) time.Duration { return p.ready }

func (p xtimePromise) settle(now time.Duration, actual int) {
	p.by.ReserveN(p.by.begin.Add(now), actual-p.permits)
}
