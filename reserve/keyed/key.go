package keyed

import (
	"context"
	"iter"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/internal/keyhooks"
)

// For returns the key's limiter. It holds nothing but the key, and asks for the key's limiter at each call. So it may
// be kept, and keeps no key from being dropped.
//
// The Reserver is a [Limiter]: perKey.For(key).(keyed.Limiter) has the further methods.
func (k *Limiters[K]) For(key K) reserve.Reserver { return &limiter[K]{k, key} }

// A Limiter is one key's limiter, as [Limiters.For] returns it. Its methods mean what
// [reserve.Limiter]'s do, and may be called at the same time.
//
// Rate, Stored and NextFree only look: a key that is asked nothing else costs no memory. They are 0 if the policy
// function returns an error. After PauseUntil, SetRate and Retime the key is remembered. If there is no policy or no
// room for it, SetRate and Retime return that error, and PauseUntil does nothing. With [WithMaxKeys] keys in debt
// the pause is lost: requests for the key get [ErrTooManyKeys] while there is no room, and are not paused afterwards.
type Limiter interface {
	reserve.Reserver
	Acquire(ctx context.Context, n int) (waited time.Duration, err error)
	TryAcquire(n int) bool
	Rate() (permitsPerSecond float64)
	SetRate(permitsPerSecond float64) error
	Retime(permitsPerSecond float64) error
	Stored() (permits float64)
	NextFree() time.Time
	PauseUntil(t time.Time)
	Resume()
}

var (
	_ Limiter          = (*limiter[int])(nil)
	_ keyhooks.Limiter = (*limiter[int])(nil)
)

// limiter is the Limiter of a key.
type limiter[K comparable] struct {
	all *Limiters[K]
	key K
}

func (l *limiter[K]) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	return l.all.ReserveWithin(ctx, l.key, n, maxWait)
}

// Hold implements [keyhooks.Limiter].
func (l *limiter[K]) Hold(ctx context.Context, n int, maxWait time.Duration, keep bool) (keyhooks.Hold, error) {
	return inside[K]{l.all}.Hold(ctx, l.key, n, maxWait, keep)
}

// Peek implements [keyhooks.Limiter].
func (l *limiter[K]) Peek(n int) (time.Duration, error) { return l.all.Peek(l.key, n) }

// Outlook implements [keyhooks.Limiter].
func (l *limiter[K]) Outlook() (engine.Outlook, error) { return inside[K]{l.all}.Outlook(l.key) }

func (l *limiter[K]) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	return l.all.Acquire(ctx, l.key, n)
}

func (l *limiter[K]) TryAcquire(n int) bool { return l.all.TryAcquire(l.key, n) }

func (l *limiter[K]) Rate() (permitsPerSecond float64) {
	l.all.look(l.key, func(of *reserve.Limiter) { permitsPerSecond = of.Rate() })
	return
}

func (l *limiter[K]) Stored() (permits float64) {
	l.all.look(l.key, func(of *reserve.Limiter) { permits = of.Stored() })
	return
}

func (l *limiter[K]) NextFree() (t time.Time) {
	l.all.look(l.key, func(of *reserve.Limiter) { t = of.NextFree() })
	return
}

func (l *limiter[K]) SetRate(permitsPerSecond float64) error {
	return l.tune(func(of *reserve.Limiter) error { return of.SetRate(permitsPerSecond) })
}

func (l *limiter[K]) Retime(permitsPerSecond float64) error {
	return l.tune(func(of *reserve.Limiter) error { return of.Retime(permitsPerSecond) })
}

func (l *limiter[K]) tune(do func(of *reserve.Limiter) error) (err error) {
	asked := l.all.with(context.Background(), l.key, func(e *entry[K]) { err = do(e.promote()) })
	if asked != nil {
		return asked
	}
	return err
}

func (l *limiter[K]) PauseUntil(t time.Time) {
	_ = l.all.with(context.Background(), l.key, func(e *entry[K]) { e.promote().PauseUntil(t) })
}

// Stop implements [keyhooks.Limiter].
func (l *limiter[K]) Stop(t time.Time) {
	_ = l.all.with(context.Background(), l.key, func(e *entry[K]) { (*engine.Limiter)(e.promote()).Stop(t) })
}

// RefuseBehind implements [keyhooks.Limiter].
func (l *limiter[K]) RefuseBehind(ctx context.Context, ahead iter.Seq[int], n int, maxWait time.Duration) (err error) {
	asked := l.all.with(ctx, l.key, func(e *entry[K]) { err = (*engine.Limiter)(e.promote()).RefuseBehind(ctx, ahead, n, maxWait) })
	if asked != nil {
		return asked
	}
	return err
}

func (l *limiter[K]) Resume() {
	_ = l.tune(func(of *reserve.Limiter) error {
		of.Resume()
		return nil
	})
}
