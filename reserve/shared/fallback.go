package shared

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
)

func (l *Limiter) withoutStore(
	ctx context.Context, r *request, maxWait time.Duration, why error,
) (reserve.Promise, error) {
	l.counters.fallbacks.Add(1)
	if l.mode == closed {
		return nil, why
	}
	alone, err := l.fallback()
	if err != nil {
		return nil, err
	}
	g := &localGrant{limiter: l, alone: alone, charged: r.charged}
	if g.Reservation, err = alone.ReserveWithin(ctx, r.permits, maxWait); err != nil {
		return nil, err
	}
	if !g.charged {
		l.owe(r.permits)
	}
	return g, nil
}

func (l *Limiter) fallback() (*reserve.Limiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answered := l.node().circuit.answered.Load()
	// An earlier outage's fallback is used again only for its debt: what it has stored since was the store's to
	// grant.
	if l.alone != nil && (l.since == answered || l.alone.NextFree().After(time.Now())) {
		return l.alone, nil
	}
	alone, err := l.newFallback()
	if err != nil {
		return nil, err
	}
	if debt := l.due.Load() - l.now(); debt > 0 && l.mode == local {
		alone.PauseUntil(time.Now().Add(time.Duration(debt)))
	}
	l.alone, l.since = alone, answered
	return alone, nil
}

func (l *Limiter) newFallback() (*reserve.Limiter, error) {
	t, rate := l.terms.Load(), math.Inf(1)
	if l.mode == local {
		rate = t.curve.Rate * l.share
	}
	if t.other != nil {
		alone := (*reserve.Limiter)(t.other.Limiter())
		return alone, alone.SetRate(rate)
	}
	stored := 0.0
	if !t.curve.Free() {
		stored = t.curve.Capacity // cold
	}
	opts := []reserve.Option{reserve.WithMaxWait(l.maxWait)}
	if t.upfront {
		opts = append(opts, reserve.PayUpfront())
	}
	p, err := reserve.NewPolicy(reserve.Variant{
		Package: "shared", Limiter: "a fallback", Curve: t.curve.AtRate, Stored: stored,
	}, rate, opts...)
	if err != nil {
		return nil, err
	}
	return p.Limiter(), nil
}

// ahead returns how many permits the fallback promised for times to come.
func (l *Limiter) ahead() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alone == nil || l.mode == open {
		return 0
	}
	if !l.alone.NextFree().After(time.Now()) { // nothing is promised for times to come
		return 0
	}
	last := l.begin.Add(time.Duration(l.owed.last.Load()))
	return max(0, l.alone.NextFree().Sub(last).Seconds()) * l.alone.Rate()
}

// A localGrant is a grant of this process alone.
type localGrant struct {
	reserve.Reservation
	limiter *Limiter
	alone   *reserve.Limiter
	charged bool // the store may know of it: its answer was lost
	over    atomic.Bool
}

// Wait gives the permits back if it fails.
func (g *localGrant) Wait(ctx context.Context) error {
	err := g.Reservation.Wait(ctx)
	if err != nil {
		g.Settle(0)
	}
	return err
}

func (g *localGrant) Cancel() { g.Settle(0) }

func (g *localGrant) Settle(actual int) {
	if g.over.Swap(true) {
		return
	}
	if more := max(0, actual) - g.Permits(); more > 0 || !g.charged {
		g.limiter.owe(more)
	}
	g.Reservation.Settle(actual)
}
