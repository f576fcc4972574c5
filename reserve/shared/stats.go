package shared

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/reserve"
)

type counters struct {
	requests, calls, failed, fallbacks atomic.Uint64
	trips                              atomic.Int64 // nanoseconds
}

// Stats are this process's counts since a limiter was made, and its circuit now.
type Stats struct {
	Requests uint64        // requests that the store has answered: TryAcquire, Reserve, refunds, Snapshot
	Calls    uint64        // calls to the store. Requests / Calls is how many went together on average
	Failed   uint64        // calls without an answer
	Trips    time.Duration // that all calls took together. Trips / Calls is a round trip
	// Fallbacks counts requests that were decided without the store.
	Fallbacks uint64
	// Open reports whether the circuit (of Keyed: any) is open.
	Open bool
}

func (c *counters) stats() Stats {
	return Stats{
		Requests: c.requests.Load(), Calls: c.calls.Load(), Failed: c.failed.Load(),
		Trips: time.Duration(c.trips.Load()), Fallbacks: c.fallbacks.Load(),
	}
}

func (c *counters) called(took int64, err error) {
	c.calls.Add(1)
	c.trips.Add(took)
	if err != nil {
		c.failed.Add(1)
	}
}

func (l *Limiter) Stats() Stats {
	s := l.counters.stats()
	s.Open = l.node().circuit.isOpen()
	return s
}

func (k *Keyed) Stats() Stats {
	s := k.counters.stats()
	s.Open = k.nodes.anyOpen()
	return s
}

func (l *Limiter) Fallbacks() uint64 { return l.counters.fallbacks.Load() }

// A Snapshot is the state of a limiter at one moment, for all processes.
type Snapshot struct {
	Rate     float64 // fresh permits per second, as this process has it; +Inf: no limit
	Capacity float64 // the largest number of permits that can be stored, at that rate
	// Level is the number of stored permits; negative while permits are owed: minus the fresh permits that must come
	// first.
	Level float64
	Wait  time.Duration // until a request for one permit, made now, would be granted
}

// Snapshot returns the state of the limiter, by a call. At 10/s, with 10 stored, after TryAcquire(6) and TryAcquire(9)
// Level is -5 and Wait 500 ms.
func (l *Limiter) Snapshot(ctx context.Context) (Snapshot, error) {
	o, err := l.look(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	t := l.terms.Load()
	return Snapshot{Rate: t.curve.Rate, Capacity: t.curve.Capacity, Level: o.level, Wait: time.Duration(o.wait)}, nil
}

// Reset makes the limiter new for all processes: full (a warming-up one: cold), and nothing owed. Promised times
// stay. Older reservations give nothing back.
func (l *Limiter) Reset(ctx context.Context) error {
	err := l.change(ctx, change{pause: reset})
	if err == nil {
		l.owed.permits.Store(0)
	}
	return err
}

type Decision struct {
	Granted bool
	Left    float64       // permits that may be used at once after this: what X-RateLimit-Remaining says, rounded down
	Wait    time.Duration // until as many permits as were asked for may be used: 0, or what Retry-After says, rounded up
}

// Decide is [Limiter.TryAcquire] that also returns, by the same call, what is left and when the next n are due. At
// 1/s, with 10 stored, Decide(1) is granted, with 9 left. After ten more it is refused, with a Wait of 1 s.
func (l *Limiter) Decide(ctx context.Context, n int) (Decision, error) {
	t := l.terms.Load()
	if now := l.now(); n > 0 && now < l.busy.Load() {
		wait := float64(l.due.Load() - now)
		if t.upfront {
			wait += float64(n-1) * t.curve.Interval
		}
		return Decision{Wait: time.Duration(toWait(wait))}, done.Cause(ctx)
	}
	r := buys(n, 0, never)
	r.look = true
	p, err := l.reserve(ctx, r)
	if refused, ok := err.(*reserve.WaitError); ok {
		return Decision{Wait: refused.Wait}, nil
	} else if err != nil {
		return Decision{}, err
	}
	d := Decision{Granted: true}
	switch of := p.(type) {
	case *localGrant:
		d.Left = of.alone.Stored()
	case *promise:
		d.Left, d.Wait = r.after.left, time.Duration(r.again)
	}
	return d, nil
}
