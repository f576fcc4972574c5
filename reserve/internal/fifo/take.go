package fifo

import (
	"context"
	"time"

	"github.com/nextfree/pace/reserve/internal/engine"
)

const (
	// patience is how often the first call of a line gives back what it has when another limit turns out to have
	// no room. After that it keeps what it has: at two limits that others keep busy, it would never have both.
	patience = 4
	// The next call has its turn when a call goes so soon. Then a program that wakes some milliseconds late loses nothing
	// at a single limit. Of several limits, the others sell by as much too early, so it is less.
	soonOfOne     = 50 * time.Millisecond
	soonOfSeveral = 2 * time.Millisecond
)

// take waits until all limits have room, and takes it. It is the call's turn.
func (w *waiter) take(ctx context.Context, maxWait time.Duration, l *Lines, keys any) (err error) {
	asks := w.asks()
	defer func() {
		for _, a := range asks {
			if err == nil {
				(*engine.Reservation)(&a.Held).Count()
			} else {
				a.Held.Cancel() // it does nothing to a reservation that was not made, or was given back
			}
		}
	}()
	for i := range w.limits {
		if open := w.limits[i].Open; open != nil {
			if err := open(ctx); err != nil {
				return err
			}
		}
	}
	soon := soonOfOne
	if len(asks) > 1 {
		soon = soonOfSeveral
	}
	for round := 0; ; round++ {
		last, longest, err := w.reserve(ctx, asks, maxWait)
		if err != nil || longest <= 0 {
			return err
		}
		if longest <= soon {
			l.pass(keys, w)
		} else if len(asks) == 1 {
			turn := time.AfterFunc(longest-soon, func() { l.pass(keys, w) })
			defer turn.Stop()
		} else if round < patience {
			// Also if it is ready at the same time as the last: a settlement may make one of them earlier.
			w.giveBack(asks, last)
		}
		if err := asks[last].Held.Wait(ctx); err != nil {
			return err
		}
	}
}

// asks returns the limits of a call, and behind them their gates.
func (w *waiter) asks() []*Limit {
	asks := w.fewAsks[:0]
	for i := range w.limits {
		asks = append(asks, &w.limits[i])
	}
	for i := range w.limits {
		if gate := w.limits[i].Gate; gate != nil {
			asks = append(asks, &Limit{By: gate, Permits: 1})
		}
	}
	return asks
}

// reserve reserves what is missing. It returns the limit for which the call must wait longest, and how long.
func (w *waiter) reserve(ctx context.Context, asks []*Limit, maxWait time.Duration) (last int, longest time.Duration, err error) {
	longest = -1
	for i, a := range asks {
		if !w.reserved.has(i) {
			if err := a.reserve(ctx, maxWait, len(asks) > 1); err != nil {
				return 0, 0, err
			}
			w.reserved.add(i)
		}
		if d := a.Held.Delay(); d > longest {
			last, longest = i, d
		}
	}
	return last, longest, nil
}

// giveBack gives back all reservations but one.
func (w *waiter) giveBack(asks []*Limit, but int) {
	for i, a := range asks {
		if i != but {
			a.Held.Cancel()
			w.reserved.remove(i)
		}
	}
}

// direct serves a single limiter that is not of this process. That keeps its own queue, and asking it only once saves a
// round trip.
func (l *Limit) direct(ctx context.Context, maxWait time.Duration) (err error) {
	if l.Recount != nil {
		l.Permits = max(1, l.Recount())
	}
	if l.Open != nil {
		if err := l.Open(ctx); err != nil {
			return err
		}
	}
	for {
		if l.Gate != nil { // while that is closed no call asks; it keeps its own order
			gate, err := l.Gate.ReserveWithin(ctx, 1, maxWait)
			if err == nil {
				err = gate.Wait(ctx)
			}
			if err != nil {
				return err
			}
		}
		if l.Held, err = l.By.ReserveWithin(ctx, l.Permits, maxWait); err == nil {
			err = l.Held.Wait(ctx)
		}
		if err != nil || l.Gate == nil {
			return err
		}
		r, err := l.Gate.ReserveWithin(ctx, 1, 0)
		if err == nil {
			return nil
		}
		r.Cancel()
		l.Held.Cancel() // the gate was closed meanwhile
	}
}
