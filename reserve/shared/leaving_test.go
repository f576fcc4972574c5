package shared_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// slowStore takes a while for each call.
type slowStore struct {
	shared.Store
	takes atomic.Int64
}

func (s *slowStore) Update(ctx context.Context, key string, f change) error {
	time.Sleep(time.Duration(s.takes.Load()))
	return s.Store.Update(ctx, key, f)
}

// A caller whose context ends while its own call is out leaves at once, and what the call got is given back.
func TestCallersLeaveTheirOwnCalls(t *testing.T) {
	for name, mode := range map[string]shared.Option{
		"closed": shared.FailClosed(), "open": shared.FailOpen(), "local": shared.Local(1),
	} {
		for how, acquire := range map[string]func(l *shared.Limiter, ctx context.Context) error{
			"Acquire":    func(l *shared.Limiter, ctx context.Context) error { _, err := l.Acquire(ctx, 1); return err },
			"TryAcquire": func(l *shared.Limiter, ctx context.Context) error { _, err := l.TryAcquire(ctx, 1); return err },
			"Snapshot":   func(l *shared.Limiter, ctx context.Context) error { _, err := l.Snapshot(ctx); return err },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &slowStore{Store: shared.Memory()}
					l := reserve.Must(shared.NewIn(s, "own", reserve.Must(pace.TokenBucket(1e-6, 10)), mode, shared.WithTimeout(time.Second)))
					require.NoError(t, l.Wait(t.Context()))
					s.takes.Store(int64(900 * time.Millisecond))
					begin := time.Now()
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(50*time.Millisecond, cancel)
					require.ErrorIs(t, acquire(l, ctx), context.Canceled)
					require.Equal(t, 50*time.Millisecond, time.Since(begin))
					time.Sleep(5 * time.Second)
					s.takes.Store(0)
					shot, err := l.Snapshot(t.Context())
					require.NoError(t, err)
					require.InDelta(t, 9, shot.Level, 1e-3)
				})
			})
		}
	}
}
