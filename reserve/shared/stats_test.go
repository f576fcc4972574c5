package shared_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// What was granted, what is left and when the next is due come back from one call, and Snapshot says the same.
func TestDecide(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		micros := int64(1_790_000_000_000_000)
		l := newShared(t, c, "decide", reserve.Must(pace.TokenBucket(1, 10)), shared.FakeTime(&micros))
		decide := func(n int, want shared.Decision) {
			t.Helper()
			before := l.Stats().Calls
			d, err := l.Decide(t.Context(), n)
			require.NoError(t, err)
			require.Equal(t, want, d)
			require.LessOrEqual(t, l.Stats().Calls, before+1)
			shot, err := l.Snapshot(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1.0, shot.Rate)
			require.Equal(t, 10.0, shot.Capacity)
			if want.Granted {
				require.Equal(t, want.Left, shot.Level)
			}
		}
		_, err := l.Stored(t.Context()) // now the clock is known
		require.NoError(t, err)
		decide(1, shared.Decision{Granted: true, Left: 9})
		decide(9, shared.Decision{Granted: true, Left: 0, Wait: 9 * time.Second})
		decide(3, shared.Decision{Wait: 3 * time.Second})
		micros += 1_500_000
		decide(3, shared.Decision{Wait: 1500 * time.Millisecond})
		_, err = l.Reserve(t.Context(), 3)
		require.NoError(t, err)
		decide(1, shared.Decision{Wait: 2500 * time.Millisecond})
		shot, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, shared.Snapshot{Rate: 1, Capacity: 10, Level: -1.5, Wait: 2500 * time.Millisecond}, shot)
	})
}

// After a Reset the limiter is as if it were new, and what was reserved before gives nothing back.
func TestReset(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for name, policy := range policies {
			micros := int64(1_790_000_000_000_000)
			one := newShared(t, c, "reset "+name, reserve.Must(policy(10)), shared.FakeTime(&micros))
			other := newShared(t, c, "reset "+name, reserve.Must(policy(10)), shared.FakeTime(&micros))
			full, err := one.Snapshot(t.Context())
			require.NoError(t, err)
			var all [5]reserve.Reservation
			for i := range all {
				all[i], err = one.Reserve(t.Context(), 20)
				require.NoError(t, err)
				micros += 1000
			}
			require.NoError(t, one.Pause(1e9))
			require.NoError(t, other.Reset(t.Context()))
			for i := range all {
				all[i].Cancel()
				shot, err := one.Snapshot(t.Context())
				require.NoError(t, err)
				require.Equal(t, full, shot, "%s, %d", name, i)
				micros += 1000
			}
		}
	})
}

// The counts of many keys are together.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := reserve.Must(shared.NewKeyedIn(shared.Memory(), reserve.Must(pace.Bursty(10))))
		for i := range 10 {
			for range 2 {
				d, err := k.Decide(t.Context(), fmt.Sprint(i), 3)
				require.NoError(t, err)
				require.True(t, d.Granted)
			}
		}
		require.NoError(t, k.Reset(t.Context(), "1"))
		shot, err := k.Snapshot(t.Context(), "1")
		require.NoError(t, err)
		require.Equal(t, 10.0, shot.Level)
		s := k.Stats()
		require.Equal(t, shared.Stats{Requests: 22, Calls: 22}, s)
	})
}
