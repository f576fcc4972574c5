package fair_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/shared"
)

// A slow store answers after a while, and counts its calls.
type slow struct {
	shared.Store
	takes time.Duration
	calls atomic.Int64
}

func (s *slow) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	s.calls.Add(1)
	time.Sleep(s.takes)
	return s.Store.Update(ctx, key, f)
}

// At a limit in a store, each call of which takes 5 ms: people wait for a slot and one call more at most. The queue
// asks at the last moment, so a change of the first rarely costs anything.
func TestOnAStore(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		const takes = 5 * time.Millisecond
		store := &slow{Store: shared.Memory(), takes: takes}
		limit, err := shared.NewIn(store, "name", reserve.Must(pace.Bursty(10, pace.WithBurst(0))))
		require.NoError(t, err)
		q := reserve.Must(fair.New(limit, people))
		var all sync.WaitGroup
		var mu sync.Mutex
		var waits []time.Duration
		for range 500 {
			all.Go(func() { require.NoError(t, errOf(q.Acquire(fair.With(ctx, "batch", ""), 1))) })
		}
		for i := range 100 {
			time.Sleep(time.Duration(400+i%7*10) * time.Millisecond)
			all.Go(func() {
				waited, err := q.Acquire(fair.With(ctx, "people", ""), 1)
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				waits = append(waits, waited)
			})
		}
		all.Wait()
		slices.Sort(waits)
		t.Log(waits[50], waits[98], waits[99], since(), store.calls.Load())
		require.LessOrEqual(t, waits[99], 100*time.Millisecond+takes+time.Millisecond)
		require.InEpsilon(t, 59.9, since().Seconds(), 0.01)
		require.LessOrEqual(t, store.calls.Load(), int64(700), "of 600 grants")
	})
}

// A store that hangs: callers go when their contexts end, and not when the store answers. A call in the name of a
// request that was granted ends with it.
func TestAStoreThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		store := &hanging{Store: shared.Memory(), until: time.Now().Add(time.Minute)}
		limit, err := shared.NewIn(store, "name", reserve.Must(pace.Bursty(10, pace.WithBurst(0))), shared.WithTimeout(time.Hour))
		require.NoError(t, err)
		q := reserve.Must(fair.New(limit, people))
		var all sync.WaitGroup
		ask := func(class string, leaves, want time.Duration) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(fair.With(ctx, class, ""), leaves)
				defer cancel()
				_, err := q.Acquire(ctx, 1)
				require.Equal(t, want, since().Truncate(time.Second), "%s: %v", class, err)
				require.Equal(t, want == leaves, errors.Is(err, context.DeadlineExceeded), "%v", err)
			})
			synctest.Wait()
		}
		ask("batch", time.Second, time.Second) // is asked for
		ask("batch", 2*time.Second, 2*time.Second)
		ask("people", 3*time.Second, 3*time.Second)
		ask("batch", time.Hour, time.Minute)
		all.Wait()
		for _, c := range q.Snapshot().Classes {
			require.Zero(t, c.Waiting)
		}
	})
}

// A hanging store does not answer until then.
type hanging struct {
	shared.Store
	until time.Time
}

func (s *hanging) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	select {
	case <-time.After(time.Until(s.until)):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Store.Update(ctx, key, f)
}
