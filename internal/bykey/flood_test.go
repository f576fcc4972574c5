package bykey_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// A million new keys come while there is room for 100, and no key with something to lose is forgotten. It may be in
// debt, paused, have a promise, or have a rate that was changed.
func TestAFloodForgivesNobody(t *testing.T) {
	b := bursty(1, 100)
	begin := b.Now()
	require.True(t, b.TryAcquire("debtor", 1000))
	b.one("paused").PauseUntil(begin.Add(1000 * s))
	require.NoError(t, b.one("slowed").SetRate(0.5))
	var promised []*reserve.Reservation
	for range 5 {
		r, err := b.ReserveWithin(ctx, "promised", 200, reserve.Forever)
		require.NoError(t, err)
		promised = append(promised, &r)
	}

	const flood = 200_000 / limitertest.Slower
	refused := 0
	for i := range flood {
		// Of each other one the limiter is a whole one, if it gets in.
		var err error
		if key := fmt.Sprint("flood ", i); i%2 == 0 {
			_, err = b.ReserveWithin(ctx, key, 900, reserve.Forever)
		} else {
			_, err = b.Acquire(ctx, key, 900)
		}
		if errors.Is(err, keyed.ErrTooManyKeys) {
			refused++
		}
		if i%(flood/100) == 0 {
			b.Advance(s) // so that the flood has 100 s in which others could be forgotten
		}
		if b.Len() > 100 {
			require.Fail(t, "too many keys are remembered")
		}
	}
	require.Equal(t, begin.Add(1000*s), b.one("debtor").NextFree())
	require.Equal(t, begin.Add(1000*s), b.one("paused").NextFree())
	require.False(t, b.TryAcquire("debtor", 1))
	require.False(t, b.TryAcquire("paused", 1))
	require.Equal(t, 0.5, b.one("slowed").Rate())
	for i, r := range promised {
		require.Equal(t, begin.Add(time.Duration(i)*200*s), r.At())
	}
	require.Equal(t, begin.Add(1000*s), b.one("promised").NextFree())
	promised[4].Cancel()
	require.Equal(t, begin.Add(800*s), b.one("promised").NextFree(), "a promise is still the key's")
	require.Equal(t, flood-96, refused)
}

// Keys that come once, and idle for a second each, make room for others that come after
// them: at 1000 a second there are never many more than a thousand.
func TestIdleKeysMakeRoomForNewOnes(t *testing.T) {
	b := bursty(1, 1<<20)
	most := 0
	for i := range 100_000 {
		require.True(t, b.TryAcquire(fmt.Sprint(i), 1))
		b.Advance(time.Millisecond)
		most = max(most, b.Len())
	}
	// Of a rate of 1/s no key is full before 1 s is over, and a key that has taken one permit in advance is full after 2
	// s.
	require.Less(t, most, 2000*3/2)
	t.Log("at most", most, "keys")
}

// At MaxKeys the search for a key to drop goes on until it has seen 64 entries, or all shards.
func TestAtMaxKeysAnIdleKeyIsFound(t *testing.T) {
	b := bursty(1, 50)
	for i := range 50 {
		require.True(t, b.TryAcquire(fmt.Sprint(i), 1))
	}
	_, err := b.Acquire(ctx, "one more", 1)
	require.ErrorIs(t, err, keyed.ErrTooManyKeys)
	require.False(t, b.TryAcquire("one more", 1))
	b.Advance(s)
	for i := range 49 { // all but the last are busy again
		require.True(t, b.TryAcquire(fmt.Sprint(i), 9))
	}
	b.Advance(5 * s)
	require.True(t, b.TryAcquire("one more", 1))
	require.Equal(t, 50, b.Len())
}

func TestNoKeysAtAll(t *testing.T) {
	for _, n := range []int{0, -1} {
		_, err := bursty(1, n).Acquire(ctx, "a", 1)
		require.ErrorIs(t, err, keyed.ErrTooManyKeys)
	}
}
