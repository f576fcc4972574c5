package shared

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/variant"

	"github.com/nextfree/pace/reserve"
)

func (l *Limiter) withoutStore(
	ctx context.Context, r *request, maxWait time.Duration, why error,
) (reserve.Promise, error) {
	l.counters.fallbacks.Add(1)
	if l.mode == closed {
		return nil, why
	}
	alone, err := l.fallback(errors.Is(why, errPatience))
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

// fallback returns the limiter of this process alone. A slow store has not failed.
func (l *Limiter) fallback(slow bool) (*reserve.Limiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &l.node().circuit
	answered := c.answered.Load()
	without := l.mode == open && (l.unknown() && !slow || c.isOpen()) // a limit
	free := time.Now()
	if !without {
		free = free.Add(time.Duration(l.debt()))
	}
	// An earlier outage's is used again only for its debt: what it has stored since was the store's to grant.
	if l.alone != nil && l.without == without && (l.since == answered || l.alone.NextFree().After(free)) {
		return l.alone, nil
	}
	alone, err := l.newFallback(without)
	if err != nil {
		return nil, err
	}
	alone.PauseUntil(free)
	l.alone, l.since, l.without = alone, answered, without
	return alone, nil
}

// debt returns how long nobody is granted anything by the last answer, and by what the store does not know of yet.
func (l *Limiter) debt() int64 {
	untold := max(0, l.owed.untold()-l.lastLeft())
	return max(0, l.due.Load()-l.now()) + toWait(untold*l.terms.Load().curve.Interval)
}

func (l *Limiter) lastLeft() float64 { return math.Float64frombits(l.left.Load()) }

func (l *Limiter) unknown() bool { return math.IsInf(l.lastLeft(), 1) }

func (l *Limiter) newFallback(without bool) (*reserve.Limiter, error) {
	t, rate := l.terms.Load(), math.Inf(1)
	if !without {
		rate = t.curve.Rate * cmp.Or(l.share, 1)
	}
	if t.other != nil {
		alone := (*reserve.Limiter)(t.other.Limiter())
		return alone, alone.SetRate(rate)
	}
	stored := 0.0
	if !t.curve.Free() {
		stored = t.curve.Capacity // cold
	} else if l.mode == open { // what the last answer showed
		stored = min(t.curve.Capacity, max(0, l.lastLeft()-l.owed.untold()))
	}
	opts := []reserve.Option{reserve.WithMaxWait(l.maxWait)}
	if t.upfront {
		opts = append(opts, reserve.PayUpfront())
	}
	p, err := variant.Variant{
		Package: "shared", Limiter: "a fallback", Curve: t.curve.AtRate, Stored: stored,
	}.Policy(rate, opts...)
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
	if !l.alone.NextFree().After(time.Now()) {
		return 0
	}
	last := l.begin.Add(time.Duration(l.owed.last.Load()))
	return max(0, l.alone.NextFree().Sub(last).Seconds()) * l.alone.Rate()
}

type localGrant struct {
	reserve.Reservation
	limiter *Limiter
	alone   *reserve.Limiter
	charged bool // the store may know of it: its answer was lost
	over    atomic.Bool
}

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
