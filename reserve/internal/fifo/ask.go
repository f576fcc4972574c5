package fifo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/bykey"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// refuse returns the error of a call that would have to wait for too long behind the calls ahead. It asks each
// ledger behind that many others, and takes nothing.
func refuse(ctx context.Context, limits []Limit, ahead [][]int, maxWait time.Duration) error {
	for i := range limits {
		l, before := &limits[i], []int(nil)
		if ahead != nil {
			before = ahead[i]
		}
		err := l.refuse(ctx, before, l.size(), maxWait)
		if n := largest(err); n >= 1 {
			err = l.refuse(ctx, before, n, maxWait)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Limit) refuse(ctx context.Context, ahead []int, n int, maxWait time.Duration) error {
	switch by := l.By.(type) {
	case *reserve.Limiter:
		return (*engine.Limiter)(by).RefuseBehind(ctx, slices.Values(ahead), n, maxWait)
	case bykey.Key:
		return by.RefuseBehind(ctx, slices.Values(ahead), n, maxWait)
	}
	return nil // not local
}

// summed reports whether only the sum of what calls ask matters, and not how they divide it.
func (l *Limit) summed() bool {
	switch by := l.By.(type) {
	case *reserve.Limiter:
		return !(*engine.Limiter)(by).Outlook().Window
	case bykey.Key:
		o, err := by.Outlook()
		return err == nil && !o.Window
	}
	return true // not local: it is never asked
}

// reserve reserves what a call asks of a limit. If the call may give it back and ask again, Snapshot does not count it
// before it is kept.
func (l *Limit) reserve(ctx context.Context, maxWait time.Duration, again bool) error {
	err := l.reserveSome(ctx, l.size(), maxWait, again)
	if n := largest(err); n >= 1 {
		err = l.reserveSome(ctx, n, maxWait, again)
	}
	return err
}

func (l *Limit) reserveSome(ctx context.Context, n int, maxWait time.Duration, again bool) (err error) {
	if by, ok := l.By.(*reserve.Limiter); ok && again {
		return (*engine.Limiter)(by).ReserveUncounted(ctx, n, maxWait, (*engine.Reservation)(&l.Held))
	}
	l.Held, err = l.By.ReserveWithin(ctx, n, maxWait)
	return err
}

// size returns the permits to reserve: of a limit that never holds as many at once, all that it can hold. The rest is
// for the caller to charge, by [reserve.Reservation.Settle].
func (l *Limit) size() int {
	if by, ok := l.By.(*reserve.Limiter); ok && l.Permits > 1 {
		if c := (*engine.Limiter)(by).Outlook().Capacity; c >= 1 && float64(l.Permits) > c {
			return int(c)
		}
	}
	return l.Permits
}

// largest returns the size of the largest request that a limiter grants, if err says that a request was larger; else 0.
func largest(err error) int {
	if err == nil {
		return 0 // without an allocation
	}
	var size *reserve.SizeError
	if errors.As(err, &size) {
		return size.Max
	}
	return 0
}
