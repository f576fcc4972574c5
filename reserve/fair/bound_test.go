package fair_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
)

// The bound of start-time fair queueing, which knows no model. In any stretch in which i and j both wait, |W_i/w_i -
// W_j/w_j| <= l_i/w_i + l_j/w_j, where W is what a flow gets, w its weight, and l its largest request. What a request
// settles at counts, for requests that settle when they go. For tenants of a class, and for classes of a priority.
func TestTheBound(t *testing.T) {
	for seed := range uint64(100) {
		for _, tenants := range []bool{true, false} {
			bound(t, seed, tenants)
		}
	}
}

func bound(t *testing.T, seed uint64, tenants bool) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		random := rand.New(rand.NewPCG(seed, 3))
		flows := 2 + random.IntN(4)
		weights := make([]float64, flows)
		classes := []fair.Class{{}}
		if !tenants {
			classes = nil
		}
		for i := range weights {
			weights[i] = float64(1+random.IntN(30)) / 10
			if !tenants {
				classes = append(classes, fair.Class{Name: strconv.Itoa(i), Weight: weights[i]})
			}
		}
		limit := evenly(100)
		q := reserve.Must(fair.New(limit, classes, fair.WithTenants(func(tenant string) float64 {
			if i, err := strconv.Atoi(tenant); err == nil && tenants {
				return weights[i]
			}
			return 1
		})))
		require.True(t, limit.TryAcquire(100)) // so that the first one doesn't go before the others come
		type grant struct{ flow, permits int }
		var mu sync.Mutex
		var grants []grant
		largest := make([]float64, flows)
		var all sync.WaitGroup
		last := make([]int, flows) // grants until which the flow waits
		for i := range flows {
			left := 40 + random.IntN(40)
			for range left {
				asks := 1 + random.IntN(10)
				uses := asks
				if random.IntN(2) == 0 {
					uses = 1 + random.IntN(asks)
				}
				largest[i] = max(largest[i], float64(asks))
				name := strconv.Itoa(i)
				by := q.Tenant(name, "")
				if tenants {
					by = q.Tenant("", name)
				}
				r, err := by.ReserveWithin(ctx, asks, reserve.Forever)
				require.NoError(t, err)
				all.Go(func() {
					require.NoError(t, r.Wait(ctx))
					r.Settle(uses)
					mu.Lock()
					grants = append(grants, grant{i, uses})
					last[i] = len(grants)
					mu.Unlock()
				})
			}
		}
		all.Wait()
		for i := range flows {
			for j := range i {
				both := grants[:min(last[i], last[j])-1] // until one of them has its last request
				allowed := largest[i]/weights[i] + largest[j]/weights[j] + 1e-6
				ahead, lowest, highest := 0.0, 0.0, 0.0
				for _, g := range both {
					switch g.flow {
					case i:
						ahead += float64(g.permits) / weights[i]
					case j:
						ahead -= float64(g.permits) / weights[j]
					}
					// The stretch from where it was lowest (or highest) to here.
					require.LessOrEqual(t, math.Max(ahead-lowest, highest-ahead), allowed, "seed %d, flows %d and %d", seed, i, j)
					lowest, highest = min(lowest, ahead), max(highest, ahead)
				}
			}
		}
	})
}

// An idle tenant takes no memory, not even after 100,000 of them have waited.
func TestIdleTenants(t *testing.T) {
	watchdog.Start(t)
	q := reserve.Must(fair.New(evenly(1e9), []fair.Class{{Name: "a"}, {Name: "b"}}, fair.WithTenants(nil)))
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := memory()
	for range 3 {
		var all sync.WaitGroup
		for worker := range 16 {
			all.Go(func() {
				for i := range 6000 {
					_, err := q.Tenant("b", fmt.Sprint(worker, " ", i)).ReserveWithin(ctx, 1, reserve.Forever)
					require.NoError(t, err)
				}
			})
		}
		all.Wait()
		require.NoError(t, errOf(q.Class("b").ReserveWithin(ctx, 1, reserve.Forever)))
		for q.Snapshot().Classes[1].Waiting > 0 {
			runtime.Gosched()
		}
	}
	require.Zero(t, q.Snapshot().Classes[1].Tenants)
	after := memory()
	require.Less(t, int64(after)-int64(before), int64(200_000), "bytes")
	runtime.KeepAlive(q)
}

// A tenant, or a class, whose weight is next to nothing: however it went alone before, the others share as they would
// without it.
func TestTinyWeights(t *testing.T) {
	const tiny = math.SmallestNonzeroFloat64
	weights := map[string]float64{"tiny": tiny, "one": 1, "three": 3}
	for _, tenants := range []bool{true, false} {
		bubble(t, func(t *testing.T, since func() time.Duration) {
			classes := []fair.Class{{}}
			if !tenants {
				classes = []fair.Class{{Name: "tiny", Weight: tiny}, {Name: "one", Weight: 1}, {Name: "three", Weight: 3}}
			}
			q := reserve.Must(fair.New(evenly(100), classes, fair.WithTenants(func(tenant string) float64 {
				if tenants {
					return weights[tenant]
				}
				return 1
			})))
			got := map[string]int{}
			var mu sync.Mutex
			var all sync.WaitGroup
			ask := func(name string, n int) {
				class := name
				if tenants {
					class = ""
				}
				r, err := q.Tenant(class, name).ReserveWithin(ctx, 1, reserve.Forever)
				require.NoError(t, err)
				all.Go(func() {
					require.NoError(t, r.Wait(ctx))
					mu.Lock()
					defer mu.Unlock()
					got[name]++
					r.Settle(n)
				})
			}
			for range 5 {
				ask("tiny", 0)
			}
			all.Wait()
			clear(got)
			for range 300 {
				ask("one", 1)
				ask("three", 1)
				ask("tiny", 1)
			}
			time.Sleep(4 * time.Second)
			mu.Lock()
			share := maps.Clone(got)
			mu.Unlock()
			all.Wait()
			require.InEpsilon(t, 3, float64(share["three"])/float64(share["one"]), 0.05, "%v", share)
			require.LessOrEqual(t, share["tiny"], 1, "%v", share)
		})
	}
}
