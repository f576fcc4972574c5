package reserve_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
)

// The worked numbers of Retime: mixed with SetRate, waits do not add up.
func TestRetimeThenSetRate(t *testing.T) {
	b := limitertest.Bursty(t, 100)
	require.True(t, b.TryAcquire(1))
	for range 99 {
		_, err := b.Reserve(ctx, 1)
		require.NoError(t, err)
	}
	last := b.Waits(1, s)
	for range 10 {
		require.NoError(t, b.Retime(50))
		require.Equal(t, 2*s, last.Delay())
		require.NoError(t, b.SetRate(100))
		require.Equal(t, s, last.Delay())
	}
}

// With a capacity in permits SetRate is Retime: a caller that waits and whose deadline no longer fits gives up.
func TestSetRateOfATokenBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := reserve.Must(pace.NewTokenBucket(10, 10))
		require.True(t, l.TryAcquire(10))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*ms)
		defer cancel()
		time.AfterFunc(500*ms, func() { require.NoError(t, l.SetRate(2)) })
		waited, err := l.Acquire(ctx, 10) // 5 are missing then, 2.5 s
		require.ErrorAs(t, err, new(*reserve.WaitError))
		require.Equal(t, 500*ms, waited)
		require.InDelta(t, 5, l.Stored(), 1e-6)
	})
}

// The worked numbers of SetPolicy.
func TestSetPolicyWorked(t *testing.T) {
	b := limitertest.Bursty(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
	policy := func(rate, capacity float64) *reserve.Policy {
		return reserve.Must(pace.Bursty(rate, pace.WithCapacity(capacity), reserve.WithClock(b.FakeClock)))
	}
	require.True(t, b.TryAcquire(4))
	require.NoError(t, b.SetPolicy(policy(20, 20)))
	require.Equal(t, 6., b.Stored(), "6 of 10 stay 6 of 20")

	require.True(t, b.TryAcquire(26)) // 20 are owed
	r, err := b.Reserve(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, s, r.Delay())
	require.NoError(t, b.SetPolicy(policy(10, 20)))
	require.Equal(t, 2*s, r.Delay(), "20 are owed")
	r.Cancel()

	b = limitertest.Bursty(t, 10)
	require.True(t, b.TryAcquire(20))
	require.NoError(t, b.SetPolicy(reserve.Must(pace.Bursty(20, pace.WithBurst(2*s), reserve.WithClock(b.FakeClock)))))
	require.Equal(t, 2*s, b.FreeIn(), "times stay")
}
