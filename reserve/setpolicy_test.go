package reserve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
)

// The worked numbers of SetPolicy.
func TestSetPolicyWorked(t *testing.T) {
	b := limitertest.Bursty(t, 10, pace.WithCapacity(10), reserve.WithStored(10))
	policy := func(rate, capacity float64) *reserve.Policy {
		return reserve.Must(pace.Bursty(rate, pace.WithCapacity(capacity), reserve.WithClock(b.FakeClock)))
	}
	require.True(t, b.TryAcquire(4))
	require.NoError(t, b.SetPolicy(policy(20, 20)))
	require.Equal(t, 12., b.Stored(), "6 of 10 become 12 of 20")

	require.True(t, b.TryAcquire(32)) // 20 are owed
	r, err := b.Reserve(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, s, r.Delay())
	require.NoError(t, b.SetPolicy(policy(10, 20)))
	require.Equal(t, s, r.Delay(), "what was promised stays")
	r.Cancel()
	require.NoError(t, b.Retime(20))
	require.Equal(t, 500*ms, b.FreeIn())

	b.Advance(s)
	require.Equal(t, 10., b.Stored())
	require.NoError(t, b.SetPolicy(policy(20, 40)))
	require.Equal(t, 10., b.Stored(), "after Retime no stored permits are added")
}
