package window

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without a queue the ring holds n times at most; with one, n for each per of it.
func TestMemory(t *testing.T) {
	l := newLedger(100, 60_000, 0)
	random := rand.New(rand.NewPCG(1, 1))
	for now := int64(0); now < 1e7; now += random.Int64N(500) {
		l.Take(now, 1)
	}
	require.Len(t, l.ring.times, 128)

	l = newLedger(100, 60_000, 0)
	now := int64(0)
	for range 1000 {
		now += 100
		_, ok := l.Reserve(now, 1, never)
		require.True(t, ok)
	}
	require.LessOrEqual(t, l.ring.length, 1000)
	require.Len(t, l.ring.times, 1024)
	l.Take(now+1e9, 1)
	require.Equal(t, 1, l.ring.length)
	require.LessOrEqual(t, cap(l.shut), maxShut)
}

// In a long queue of mixed sizes nobody's search passes over all of it: an upper
// bound on what is remembered, and a lower one on what that is worth.
func TestSearchesBeginWhereEarlierOnesEnded(t *testing.T) {
	l := newLedger(10, 1000, 0)
	for i := range 10_000 {
		permits := 1 + i*7919%5
		slot, _ := l.Reserve(0, permits, never)
		if i > 100 {
			require.Greater(t, l.begin(0, permits), slot.Ready-10_000, "within ten windows of where it ends")
		}
		require.LessOrEqual(t, len(l.shut), maxShut)
	}
}
