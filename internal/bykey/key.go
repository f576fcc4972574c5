package bykey

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

var _ limit.Limit = (*limiter[int])(nil)

type limiter[K comparable] struct {
	all *Limiters[K]
	key K
}

func (k *Limiters[K]) For(key K) reserve.Reserver { return &limiter[K]{k, key} }

func (l *limiter[K]) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	return l.all.ReserveWithin(ctx, l.key, n, maxWait)
}

func (l *limiter[K]) Take(ctx context.Context, n int, maxWait time.Duration, used bool) (limit.Taken, error) {
	return l.all.Take(ctx, l.key, n, maxWait, used)
}

func (l *limiter[K]) Peek(n int) (time.Duration, error) { return l.all.Peek(l.key, n) }

func (l *limiter[K]) Outlook() (engine.Outlook, bool) {
	o, err := l.all.Outlook(l.key)
	return o, err == nil
}

func (l *limiter[K]) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	return l.all.Acquire(ctx, l.key, n)
}

func (l *limiter[K]) TryAcquire(n int) bool { return l.all.TryAcquire(l.key, n) }

func (l *limiter[K]) Rate() (permitsPerSecond float64) { return look(l, (*engine.Limiter).Rate) }

func (l *limiter[K]) Stored() (permits float64) { return look(l, (*engine.Limiter).Stored) }

func (l *limiter[K]) NextFree() time.Time { return look(l, (*engine.Limiter).NextFree) }

func (l *limiter[K]) Name() string { return look(l, (*engine.Limiter).Name) }

func (l *limiter[K]) Version() uint64 { return look(l, (*engine.Limiter).Version) }

// look asks the key's limiter, or what it would be; do must change nothing.
func look[K comparable, T any](l *limiter[K], do func(*engine.Limiter) T) (is T) {
	_ = l.all.with(context.Background(), l.key, func(e *entry[K]) error {
		is = do(e.copied())
		return nil
	})
	return is
}

func (l *limiter[K]) SetRate(permitsPerSecond float64) error {
	return l.change(func(of *engine.Limiter) error { return (*reserve.Limiter)(of).SetRate(permitsPerSecond) })
}

func (l *limiter[K]) Retime(permitsPerSecond float64) error {
	return l.change(func(of *engine.Limiter) error { return (*reserve.Limiter)(of).Retime(permitsPerSecond) })
}

func (l *limiter[K]) PauseUntil(t time.Time) {
	_ = l.change(func(of *engine.Limiter) error { of.PauseUntil(t); return nil })
}

func (l *limiter[K]) Stop(t time.Time) {
	_ = l.change(func(of *engine.Limiter) error { of.Stop(t); return nil })
}

// Said makes the key remembered only where the limiter can learn something by it.
func (l *limiter[K]) Said(left float64, end time.Time) {
	_ = l.all.with(context.Background(), l.key, func(e *entry[K]) error {
		if e.policy.Terms().Curve == nil {
			e.limiter().Said(left, end)
		}
		return nil
	})
}

func (l *limiter[K]) Tune(permitsPerSecond float64) { _ = l.Retime(permitsPerSecond) } // fails for no positive number

func (l *limiter[K]) Traits() limit.Traits {
	return limit.Traits{Blocks: true, Tunable: true, Stops: true}
}

func (l *limiter[K]) Resume() {
	_ = l.change(func(of *engine.Limiter) error { of.Resume(); return nil })
}

// change calls do with the key's limiter, which then is not compact.
func (l *limiter[K]) change(do func(of *engine.Limiter) error) error {
	return l.all.with(context.Background(), l.key, func(e *entry[K]) error { return do(e.limiter()) })
}
