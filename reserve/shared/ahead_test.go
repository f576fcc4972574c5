package shared

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// away is a store that can be lost.
type away struct {
	Store
	down atomic.Bool
	lost atomic.Bool // the answers
}

func (s *away) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	if s.down.Load() {
		return ErrNotWritten
	}
	err := s.Store.Update(ctx, key, f)
	if s.lost.Load() {
		return errors.New("lost")
	}
	return err
}

// What a process granted in an outage is charged a capacity at most, also if it makes its next call much later, and
// others have used the store meanwhile.
func TestChargeAfterAnIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), Memory()
		policy := reserve.Must(pace.Bursty(10, pace.WithCapacity(10)))
		lost := &away{Store: store}
		alone, err := NewIn(lost, "x", policy, Local(1))
		require.NoError(t, err)
		other, err := NewIn(store, "x", policy)
		require.NoError(t, err)
		acquire := func(l *Limiter, d time.Duration) {
			for begin := time.Now(); time.Since(begin) < d; {
				_, err := l.Acquire(ctx, 1)
				require.NoError(t, err)
			}
		}
		acquire(alone, time.Second)
		lost.down.Store(true)
		acquire(alone, time.Minute)
		lost.down.Store(false)
		acquire(other, 30*time.Second)
		_, _ = alone.TryAcquire(ctx, 1)
		now, err := other.Snapshot(ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, now.Level, -12.)
	})
}

// What was bought ahead and can't be given back is lost, and keeps no key in memory.
func TestAheadInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{&away{Store: Memory()}}
		k, err := NewKeyedIn(store, reserve.Must(pace.Bursty(100, pace.WithCapacity(100))), WithAhead(20))
		require.NoError(t, err)
		for range 8 {
			_, err := k.Acquire(t.Context(), "x", 1)
			require.NoError(t, err)
		}
		l := k.keys[known{text: "x"}].Limiter
		require.False(t, l.stock.empty(), "the test shows nothing")
		store.down.Store(true)
		for range 4 { // the circuit opens
			_, err := k.Acquire(t.Context(), "x", 90)
			require.Error(t, err)
		}
		time.Sleep(5 * time.Second)
		require.True(t, l.stock.empty())
		require.True(t, l.forgettable())
	})
}

// A call that buys ahead is one failed call like any other.
func TestAheadAndTheCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{&away{Store: Memory()}}
		l, err := NewIn(store, "x", reserve.Must(pace.Bursty(1000, pace.WithCapacity(10))), WithAhead(64), FailOpen())
		require.NoError(t, err)
		acquire := func() {
			_, err := l.Acquire(t.Context(), 1)
			require.NoError(t, err)
		}
		for range 70 {
			acquire()
		}
		store.lost.Store(true)
		for before := l.Stats().Calls; l.Stats().Calls == before; {
			acquire()
		}
		store.lost.Store(false)
		require.Equal(t, uint64(1), l.Stats().Failed)
		require.False(t, l.Stats().Open)
		time.Sleep(2 * time.Second)
	})
}

// A large request is forgotten.
func TestAheadForgetsSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{&away{Store: Memory()}}
		l, err := NewIn(store, "x", reserve.Must(pace.Bursty(1000, pace.WithCapacity(1000))), WithAhead(20))
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, l.Wait(t.Context()))
		}
		_, err = l.Acquire(t.Context(), 100)
		require.NoError(t, err)
		for l.Stats().Calls < 50 {
			require.NoError(t, l.Wait(t.Context()))
		}
		l.stock.mu.Lock()
		for _, of := range l.stock.lots {
			require.Equal(t, 1, of.permits)
		}
		l.stock.mu.Unlock()
		time.Sleep(2 * time.Second)
	})
}

// A slow call says little about how long calls take.
func TestAheadAndASlowCall(t *testing.T) {
	s := new(stock)
	for range 10 {
		s.took(int64(100 * time.Millisecond))
	}
	s.took(int64(2 * time.Second))
	require.Less(t, time.Duration(s.trip), 400*time.Millisecond)
}

type slow struct{ *away }

func (s *slow) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	time.Sleep(50 * time.Millisecond)
	return s.away.Update(ctx, key, f)
}
