package fifo

import (
	"context"
	"errors"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/hooks"
)

// engine is how this package looks into limiters.
var engine = hooks.Open[*reserve.Policy, *reserve.Limiter, *reserve.Reservation]()

// reserve reserves what a call asks of a limit. Of a limit that never holds as much at once it reserves all that it can
// hold: the rest is for the caller to charge, by [reserve.Reservation.Settle].
func (l *Limit) reserve(ctx context.Context, maxWait time.Duration) (r reserve.Reservation, err error) {
	n := l.Permits
	if by, ok := l.By.(*reserve.Limiter); ok && n > 1 {
		if c := engine.Outlook(by).Capacity; c >= 1 && float64(n) > c {
			n = int(c)
		}
	}
	r, err = l.By.ReserveWithin(ctx, n, maxWait)
	if err != nil {
		var size *reserve.SizeError
		if errors.As(err, &size) && size.Max >= 1 {
			r, err = l.By.ReserveWithin(ctx, size.Max, maxWait)
		}
	}
	return
}

const (
	// patience is how often the first of a line gives back what it has when another limit turns out to have no
	// room. After that it keeps what it has: at two limits that others keep busy, it would never have both.
	patience = 4
	// The next has its turn when a call goes so soon: at a single limit a program that is late to wake, by some
	// milliseconds, loses nothing then. Of several limits, the others sell by as much too early, so it is less.
	soonOfOne     = 50 * time.Millisecond
	soonOfSeveral = 2 * time.Millisecond
)

// take waits until all limits have room, and takes it.
func (p *place) take(ctx context.Context, maxWait time.Duration, l *Lines, set any) (err error) {
	asks := p.asks()
	defer func() {
		if err != nil {
			for _, a := range asks {
				a.Held.Cancel() // what was not had, or has been given back, promises nothing
			}
		}
	}()
	for i := range p.limits {
		if open := p.limits[i].Open; open != nil {
			if err := open(ctx); err != nil {
				return err
			}
		}
	}
	for round := 0; ; round++ {
		longest, last := time.Duration(-1), 0
		for i, a := range asks {
			if !p.holds.is(i) {
				if a.Held, err = a.reserve(ctx, maxWait); err != nil {
					return err
				}
				p.holds.set(i, true)
			}
			if d := a.Held.Delay(); d > longest {
				longest, last = d, i
			}
		}
		if longest <= 0 { // less: there are no limits
			return nil
		}
		soon := soonOfOne
		if len(asks) > 1 {
			soon = soonOfSeveral
		}
		if longest <= soon {
			l.pass(set, p)
		} else if len(asks) == 1 {
			turn := time.AfterFunc(longest-soon, func() { l.pass(set, p) })
			defer turn.Stop()
		}
		for i, a := range asks {
			// Also at the same time: a settlement may make one of them earlier.
			if i != last && longest > soon && round < patience {
				a.Held.Cancel()
				p.holds.set(i, false)
			}
		}
		if err = asks[last].Held.Wait(ctx); err != nil {
			return err
		}
	}
}

// asks returns the limits of a call, and behind them the gates of those that have one.
func (p *place) asks() []*Limit {
	asks := p.fewAsks[:0]
	for i := range p.limits {
		asks = append(asks, &p.limits[i])
	}
	for i := range p.limits {
		if gate := p.limits[i].Gate; gate != nil {
			asks = append(asks, &Limit{By: gate, Permits: 1})
		}
	}
	return asks
}

// direct waits at a limit of one limiter that is not of this process: its promises are its own line, and asking twice
// would cost twice.
func direct(ctx context.Context, l *Limit, maxWait time.Duration) (err error) {
	if l.Recount != nil {
		l.Permits = max(1, l.Recount())
	}
	for {
		if l.Gate != nil { // while that is closed, nobody asks: it keeps its own order
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
		gate, err := l.Gate.ReserveWithin(ctx, 1, 0)
		if err == nil {
			return nil
		}
		gate.Cancel()
		l.Held.Cancel() // the gate was closed meanwhile
	}
}
