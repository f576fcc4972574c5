package bykey_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/bykey"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// few admits no more than three odd keys.
type few struct{ odd, all atomic.Int64 }

func (f *few) Admits(key, remembered int) bool { return key%2 == 0 || f.odd.Load() < 3 }
func (f *few) Count(key, by int) {
	f.all.Add(int64(by))
	f.odd.Add(int64(key % 2 * by))
}

func TestAGuardKeepsKeysOut(t *testing.T) {
	clock := clockwork.NewFakeClock()
	policy := reserve.Must(pace.Bursty(1, reserve.WithClock(clock)))
	var guard few
	of := bykey.New(bykey.Settings[int]{Always: policy, MaxKeys: 64, Guard: &guard})
	k := (*keyed.Limiters[int])(of)
	check := func(odd, all int64) {
		t.Helper()
		require.Equal(t, odd, guard.odd.Load())
		require.Equal(t, all, guard.all.Load())
		require.EqualValues(t, all, k.Len())
	}
	for key := range 20 {
		_, err := k.ReserveWithin(ctx, key, 10, 0)
		if key%2 == 1 && key > 5 {
			require.ErrorIs(t, err, keyed.ErrTooManyKeys)
			continue
		}
		require.NoError(t, err)
	}
	check(3, 13)
	require.False(t, k.TryAcquire(19, 1))
	require.False(t, k.TryAcquire(5, 1), "it is in debt")
	_, err := k.ReserveWithin(ctx, 4, 1, 0)
	require.ErrorAs(t, err, new(*reserve.WaitError))
	_, err = k.ReserveWithin(ctx, 22, 1, -1)
	require.NoError(t, err)
	check(3, 14)

	clock.Advance(time.Minute) // all are like new, and nobody has asked since
	tries := 0
	for ; !k.TryAcquire(19, 10); tries++ {
		require.Less(t, tries, 100, "room is made for it, a few keys at a time")
	}
	require.Positive(t, guard.odd.Load())
	clock.Advance(time.Minute)
	of.Sweep()
	check(0, 0)

	// What was refused, or charged afterwards, is counted as well.
	r, err := k.ReserveWithin(ctx, 7, 1, 0)
	require.NoError(t, err)
	clock.Advance(time.Minute)
	of.Sweep()
	check(0, 0)
	r.Settle(100)
	check(1, 1)
	_, err = k.ReserveWithin(ctx, 9, 0, 0)
	require.ErrorAs(t, err, new(*reserve.ValueError))
	check(1, 1)
}
