package window

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/smooth"
)

// Without a queue the list holds n requests at most; with one, the waiting requests as well. However many more come and
// go, it stays so.
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
	}
	require.Len(t, l.ring.list, 128)

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
	require.LessOrEqual(t, l.ring.length, 1000)
	require.Len(t, l.ring.list, 1024)
	l.Take(now+1e9, 1)
	require.Equal(t, 1, l.ring.length)
	require.Zero(t, l.empty)
}

// What has left the window, exactly per later, leaves the list; with no limit as well.
func TestForgetsExactlyPerLater(t *testing.T) {
	for _, tt := range []struct {
		per, later int64
		want       int
	}{{10, 9, 2}, {10, 10, 1}, {10, 11, 1}, {1, 1, 1}, {0, 1, 1}} {
		l := newLedger(0, 3, tt.per, 1)
		l.Take(0, 1)
		l.Take(tt.later, 1)
		require.Equal(t, tt.want, l.ring.length, "%+v", tt)
	}
}

// A longer window than the present one is remembered as long as a request waits by it.
func TestForgetsAfterAChange(t *testing.T) {
	l := newLedger(0, 1, 100, 1e7)
	l.Take(0, 1)
	slot, _, _ := l.Reserve(0, 1, never)
	l.SetRate(0, 1e8) // 10 ns
	l.NextFree(50)
	require.Equal(t, 2, l.ring.length)
	l.Return(50, slot, 0)
	l.NextFree(50)
	require.Zero(t, l.ring.length)

	l.Take(60, 1)
	l.SetRate(61, 1e7)
	l.SetRate(62, 1e8)
	l.NextFree(70)
	require.Zero(t, l.ring.length)

	l.Take(80, 1)
	l.Reserve(80, 1, never)
	l.SetRate(80, 1e6)
	l.Retime(80, 1e8)
	l.Take(95, 1)
	require.Equal(t, 1, l.ring.length)
}

// What had left a window when it was changed stays out of the next one, even if it is remembered for another request.
func TestWhatHasLeftStaysOut(t *testing.T) {
	l := newLedger(0, 2, 10, 2e8)
	l.Take(0, 2)
	l.Reserve(0, 1, never) // at 10
	slot, ready, _ := l.Reserve(0, 2, never)
	require.Equal(t, int64(20), ready)
	l.SetRate(5, 2e9) // 1 ns
	l.SetRate(11, 4e8)
	last, ready, _ := l.Reserve(11, 2, never)
	require.Equal(t, int64(25), ready)
	l.Return(12, slot, 0)
	ready, _ = l.Ready(12, last.Number)
	require.Equal(t, int64(12), ready, "what went at 10 was out at 11")
}

// Requests that were granted at one moment are kept as one, each with permits of its own that may come back.
func TestMemoryOfAMoment(t *testing.T) {
	l := newLedger(0, 1000, 60_000, 1)
	var slots []smooth.Slot
	for range 900 {
		slot, _, _ := l.Reserve(5, 1, 5)
		slots = append(slots, slot)
	}
	require.Equal(t, 1, l.ring.length)
	require.Equal(t, 100., l.Stored(5))
	for i, slot := range slots[1:] {
		l.Return(6, slot, 0)
		require.Equal(t, float64(101+i), l.Stored(6))
		ready, known := l.Ready(6, slots[0].Number)
		require.True(t, known)
		require.Equal(t, int64(5), ready)
	}
	l.Return(6, slots[0], 0)
	require.Zero(t, l.ring.length)
}

// While one that waits is at the head, others that come and go do not fill the list.
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
	}
	require.LessOrEqual(t, len(l.ring.list), 8)
	require.LessOrEqual(t, l.ring.length, 6)
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
		steps := 0
		for _, i := range random.Perm(callers) {
			before := l.placed
			l.Ready(1, slots[i].Number)
			steps += max(0, l.placed-before)
			l.Return(1, slots[i], 0)
			l.Ready(1, slots[0].Number)
		}
		t.Logf("%d times worked out", steps)
		require.Less(t, steps, callers*callers/6)
		require.Equal(t, int64(1000), l.NextFree(1))
		require.Equal(t, 1, l.ring.length)
	}
}
