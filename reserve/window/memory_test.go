package window

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/smooth"
)

// However many requests come and go, the log holds n grants at most, and the line no more than twice those that wait.
func TestMemory(t *testing.T) {
	l := newLedger(0, 100, 60_000, 1)
	random := rand.New(rand.NewPCG(1, 1))
	now := int64(0)
	for ; now < 1e7; now += random.Int64N(500) {
		l.Take(now, 1)
		slot, _, ok := l.Reserve(now+1, 1, now+1)
		if ok {
			l.Return(now+2, slot, 0)
		}
		require.LessOrEqual(t, l.log.Len(), 100)
	}
	for range 900 { // a queue
		l.Reserve(now, 1, never)
	}
	for range 10_000 {
		now++
		first, _, _ := l.Reserve(now, 1, never)
		second, _, _ := l.Reserve(now, 1, never)
		l.Return(now, first, 0) // in the middle
		if random.IntN(2) == 0 {
			l.NextFree(now) // the times are known, or not
		}
		l.Return(now, second, 0)
	}
	require.LessOrEqual(t, l.Len(), 1000)
	l.Take(now+1e9, 1)
	require.Zero(t, l.Len())
	require.Equal(t, 1, l.log.Len())
}

// What has left the window, exactly per later, leaves the log; with no limit as well.
func TestForgetsExactlyPerLater(t *testing.T) {
	for _, tt := range []struct {
		per, later int64
		want       int
	}{{10, 9, 2}, {10, 10, 1}, {10, 11, 1}, {1, 1, 1}, {0, 1, 1}} {
		l := newLedger(0, 3, tt.per, 1)
		l.Take(0, 1)
		l.Take(tt.later, 1)
		require.Equal(t, tt.want, l.log.Len(), "%+v", tt)
	}
}

// What had left a window when it was changed stays out of the next one.
func TestWhatHasLeftStaysOut(t *testing.T) {
	l := newLedger(0, 2, 10, 2e8)
	l.Take(0, 2)
	l.SetRate(5, 2e9) // 1 ns
	l.SetRate(8, 2e8)
	_, ready, _ := l.Reserve(8, 2, never)
	require.Equal(t, int64(8), ready)
}

// Requests that were granted at one moment are kept as one, each with permits of its own that may come back.
func TestMemoryOfAMoment(t *testing.T) {
	l := newLedger(0, 1000, 60_000, 1)
	var slots []smooth.Slot
	for range 900 {
		slot, _, _ := l.Reserve(5, 1, 5)
		slots = append(slots, slot)
	}
	require.Equal(t, 1, l.log.Len())
	require.Equal(t, 100., l.Stored(5))
	for i, slot := range slots[1:] {
		l.Return(6, slot, 0)
		require.Equal(t, float64(101+i), l.Stored(6))
	}
	l.Return(6, slots[0], 0)
	require.Zero(t, l.log.Len())
}

// While one that waits is at the head, others that come and go do not fill the line.
func TestMemoryOfThoseThatGiveUp(t *testing.T) {
	l := newLedger(0, 10, 1e9, 1)
	l.Take(0, 10)
	l.Reserve(0, 10, never)
	var slots []smooth.Slot
	for now := range int64(100_000) {
		slot, _, _ := l.Reserve(now, 1, never)
		if slots = append(slots, slot); len(slots) == 3 {
			l.Return(now, slots[1], 0)
			slots = append(slots[:1], slots[2])
			l.Return(now, slots[0], 0)
			slots = slots[1:]
		}
		require.LessOrEqual(t, l.Len(), 6)
	}
}

// All give up in random order, each asked for its time before, as the limiter does: the next one waits for
// no more than the window.
func TestManyGiveUp(t *testing.T) {
	for _, size := range []int{1, 10, 1000} {
		callers := int(scaled(10_000))
		l := newLedger(0, size, 1000, 1)
		random := rand.New(rand.NewPCG(1, 1))
		l.Take(0, size)
		slots := make([]smooth.Slot, callers)
		for i := range slots {
			slots[i], _, _ = l.Reserve(0, 1+random.IntN(min(size, 3)), never)
		}
		for _, i := range random.Perm(callers) {
			l.Ready(1, slots[i].Number)
			l.Return(1, slots[i], 0)
			l.Ready(1, slots[0].Number)
		}
		require.Equal(t, int64(1000), l.NextFree(1))
		require.Zero(t, l.Len())
	}
}
