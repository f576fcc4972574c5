package calendar_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
)

// A quota that is lowered and raised again within a period forgets nothing that was used, and owes nothing for it.
func TestLoweredAndRaised(t *testing.T) {
	for _, per := range []calendar.Period{calendar.Every(time.Hour), calendar.FromFirst(time.Hour)} {
		clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0).Truncate(time.Hour))
		policy := reserve.Must(calendar.Policy(1, per, reserve.WithClock(clock)))
		l := reserve.Must(calendar.New(3, per, reserve.WithClock(clock)))
		given := reserve.Must(l.Reserve(t.Context(), 1))
		require.True(t, l.TryAcquire(2))
		require.NoError(t, l.SetRate(reserve.Per(1, time.Hour)))
		require.Zero(t, l.Snapshot().Level)
		state, err := l.AppendBinary(nil)
		require.NoError(t, err)

		require.NoError(t, l.SetRate(reserve.Per(3, time.Hour)))
		require.False(t, l.TryAcquire(1))
		given.Cancel()
		require.Equal(t, 1., l.Stored())
		require.NoError(t, l.SetRate(reserve.Per(1, time.Hour)))
		clock.Advance(time.Hour)
		require.Equal(t, 1., l.Stored())
		require.Equal(t, 1., reserve.Must(policy.Restore(state)).Stored())
	}
}
