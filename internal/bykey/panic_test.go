package bykey_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// A panic of what the caller brings leaves nothing locked, for a known key and a new one.
func TestAPanicLeavesNothingLocked(t *testing.T) {
	policy := reserve.Must(pace.Bursty(10))
	k := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
	require.True(t, k.TryAcquire("known", 1))
	for _, key := range []string{"known", "new"} {
		require.Panics(t, func() { _, _ = k.Acquire(nil, key, 1) })                  //lint:ignore SA1012 that is the point
		require.Panics(t, func() { _, _ = k.ReserveWithin(nil, key, 1, time.Hour) }) //lint:ignore SA1012 that is the point
		_, err := k.ReserveWithin(context.Background(), key, 1, time.Hour)
		require.NoError(t, err)
	}
}

func TestAcquireCountsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := reserve.Must(pace.Bursty(1))
		k := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
		require.True(t, k.TryAcquire("a", 1))
		begin := time.Now()
		time.AfterFunc(time.Second/2, func() {
			k.For("a").(interface{ PauseUntil(time.Time) }).PauseUntil(begin.Add(10 * time.Second))
		})
		waited, err := k.Acquire(t.Context(), "a", 1)
		require.NoError(t, err)
		require.Equal(t, time.Since(begin), waited)
	})
}

// Policies that are being asked for count as keys: a flood is bounded while the function is slow.
func TestAFloodWaitsForNoPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		slow := make(chan struct{})
		k := keyed.New(func(int) (*reserve.Policy, error) {
			calls.Add(1)
			<-slow
			return pace.Bursty(1)
		}, keyed.WithMaxKeys(10))
		var refused atomic.Int64
		for i := range 30 {
			go func() {
				if _, err := k.Acquire(t.Context(), i, 1); err != nil {
					refused.Add(1)
				}
			}()
			synctest.Wait()
		}
		require.EqualValues(t, 10, calls.Load())
		require.EqualValues(t, 20, refused.Load())
		go func() { _, _ = k.Acquire(t.Context(), 3, 1) }() // one that is being asked for waits
		synctest.Wait()
		require.EqualValues(t, 20, refused.Load())
		close(slow)
	})
}
