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
func (p *place) take(ctx context.Context, maxWait time.Duration, l *Lines, set any) (held []reserve.Reservation, err error) {
	limits := p.limits
	for i := range p.limits {
		if open := p.limits[i].Open; open != nil {
			if err := open(ctx); err != nil {
				return nil, err
			}
		}
		if gate := p.limits[i].Gate; gate != nil {
			limits = append(limits[:len(limits):len(limits)], Limit{By: gate, Permits: 1})
		}
	}
	got := make([]reserve.Reservation, len(limits))
	defer func() {
		if err != nil {
			for i := range got {
				got[i].Cancel() // what was not had, or has been given back, promises nothing
			}
		}
	}()
	for round := 0; ; round++ {
		longest, last := time.Duration(-1), 0
		for i := range limits {
			if !p.holds.is(i) {
				if got[i], err = limits[i].reserve(ctx, maxWait); err != nil {
					return nil, err
				}
				p.holds.set(i, true)
			}
			if d := got[i].Delay(); d > longest {
				longest, last = d, i
			}
		}
		if longest <= 0 { // less: there are no limits
			return got[:len(p.limits)], nil
		}
		soon := soonOfOne
		if len(limits) > 1 {
			soon = soonOfSeveral
		}
		if longest <= soon {
			l.pass(set, p)
		} else if len(limits) == 1 {
			turn := time.AfterFunc(longest-soon, func() { l.pass(set, p) })
			defer turn.Stop()
		}
		for i := range got {
			// Also at the same time: a settlement may make one of them earlier.
			if i != last && longest > soon && round < patience {
				got[i].Cancel()
				p.holds.set(i, false)
			}
		}
		if err = got[last].Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// direct waits at a limit of one limiter that is not of this process: its promises are its own line, and asking twice
// would cost twice.
func direct(ctx context.Context, l *Limit, maxWait time.Duration) ([]reserve.Reservation, error) {
	held := make([]reserve.Reservation, 1)
	for {
		if l.Gate != nil { // while that is closed, nobody asks: it keeps its own order
			gate, err := l.Gate.ReserveWithin(ctx, 1, maxWait)
			if err == nil {
				err = gate.Wait(ctx)
			}
			if err != nil {
				return nil, err
			}
		}
		var err error
		if held[0], err = l.By.ReserveWithin(ctx, l.Permits, maxWait); err == nil {
			err = held[0].Wait(ctx)
		}
		if err != nil {
			return nil, err
		}
		if l.Gate == nil {
			return held, nil
		}
		gate, err := l.Gate.ReserveWithin(ctx, 1, 0)
		if err == nil {
			return held, nil
		}
		gate.Cancel()
		held[0].Cancel() // the gate was closed meanwhile
	}
}
