package bykey_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// live returns how many bytes are in use.
func live() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// bytesPerKey makes n keys of some 12 characters each and returns how many bytes each
// takes while it lives, beside its own, and when it has been idle and was swept.
func bytesPerKey(tb testing.TB, n int, use func(b *byKey, key string)) (alive, idle float64) {
	b := bursty(1, n)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "user-" + strconv.Itoa(1e6+i)
	}
	before := live()
	for _, key := range keys {
		use(b, key)
	}
	require.Equal(tb, n, b.Len())
	alive = (live() - before) / float64(n)
	b.Advance(time.Hour)
	for b.Len() > 1 { // no sweep but that which calls bring along
		for range 1000 {
			b.TryAcquire("other", 1)
		}
	}
	idle = (live() - before) / float64(n)
	runtime.KeepAlive(keys)
	runtime.KeepAlive(b)
	return alive, idle
}

func acquire(b *byKey, key string) { b.TryAcquire(key, 1) }

func TestMemory(t *testing.T) {
	alive, idle := bytesPerKey(t, 100_000, acquire)
	t.Logf("%.1f bytes per live key, %.2f when they are idle", alive, idle)
	require.Less(t, alive, 110.0)
	require.Less(t, idle, 1.0)
}

func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{200_000, 500_000, 1_000_000} {
		for name, use := range map[string]func(*byKey, string){
			"taken": acquire,
			"reserved": func(b *byKey, key string) {
				_, err := b.ReserveWithin(ctx, key, 1, reserve.Forever)
				require.NoError(nil, err)
			},
		} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				for b.Loop() {
					alive, idle := bytesPerKey(b, n, use)
					b.ReportMetric(alive, "B/key")
					b.ReportMetric(idle, "B/idle-key")
				}
			})
		}
	}
}

func TestAllocations(t *testing.T) {
	b := bursty(1e9, 100)
	b.Advance(time.Hour)
	for name, f := range map[string]func(){
		"TryAcquire": func() { b.TryAcquire("a", 1) },
		"Acquire":    func() { _, _ = b.Acquire(ctx, "a", 1) },
	} {
		f()
		require.Equal(t, 1, b.Len())
		require.Zero(t, b.Promoted())
		require.Zero(t, testing.AllocsPerRun(1000, f), name)
	}
	r, err := b.ReserveWithin(ctx, "a", 1, 0)
	require.NoError(t, err)
	require.Equal(t, 1, b.Promoted())
	for name, f := range map[string]func(){
		"TryAcquire":    func() { b.TryAcquire("a", 1) },
		"Acquire":       func() { _, _ = b.Acquire(ctx, "a", 1) },
		"ReserveWithin": func() { _, _ = b.ReserveWithin(ctx, "a", 1, 0) },
	} {
		require.Zero(t, testing.AllocsPerRun(1000, f), name+" of a whole limiter")
	}
	r.Cancel()
}
