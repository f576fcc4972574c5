package bykey_test

import (
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// Ledgers that are not smooth's are kept as whole limiters, and dropped as well.
func TestWindowsByKey(t *testing.T) {
	clock := clockwork.NewFakeClock()
	policy := reserve.Must(window.Policy(3, s, reserve.WithClock(clock)))
	keys := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
	require.Equal(t, 3.0, keys.For("a").(keyed.Limiter).Stored())
	_, err := keys.Acquire(ctx, "a", 4)
	var tooLarge *reserve.SizeError
	require.ErrorAs(t, err, &tooLarge)
	require.Zero(t, keys.Len())

	require.True(t, keys.TryAcquire("a", 3))
	require.False(t, keys.TryAcquire("a", 1))
	between, err := keys.ReserveWithin(ctx, "a", 3, reserve.Forever)
	require.NoError(t, err)
	last, err := keys.ReserveWithin(ctx, "a", 3, reserve.Forever)
	require.NoError(t, err)
	require.Equal(t, 2*s, last.Delay())
	between.Cancel()
	require.Equal(t, s, last.Delay(), "it has moved up")
	clock.Advance(s - 1)
	inside(keys).Sweep()
	require.Equal(t, 1, keys.Len(), "a promise is still to come")
	clock.Advance(s)
	inside(keys).Sweep()
	require.Equal(t, 1, keys.Len(), "its permits are in the window")
	clock.Advance(1)
	inside(keys).Sweep()
	require.Zero(t, keys.Len())
	require.True(t, keys.TryAcquire("a", 3))
}
