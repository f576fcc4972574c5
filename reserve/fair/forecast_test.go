package fair_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/window"
)

// What is stored behind a pause is known when the best case of a request is: it is not refused for others that are paid
// from it.
func TestTheBestCaseKnowsWhatIsStored(t *testing.T) {
	for name, policy := range map[string]*reserve.Policy{
		"upfront": reserve.Must(pace.TokenBucket(1, 8)),
		"bursty":  reserve.Must(pace.Bursty(1, pace.WithCapacity(8), reserve.WithStored(8))),
	} {
		synctest.Test(t, func(t *testing.T) {
			limit := policy.Limiter()
			limit.PauseUntil(time.Now().Add(time.Second))
			q := reserve.Must(fair.New(limit, []fair.Class{{Name: "people", Priority: 1}, {Name: "batch"}}))
			a, err := q.Class("people").ReserveWithin(ctx, 3, reserve.Forever)
			require.NoError(t, err)
			b, err := q.Class("batch").ReserveWithin(ctx, 5, 2*time.Second)
			require.NoError(t, err, name)
			require.NoError(t, a.Wait(ctx))
			require.NoError(t, b.Wait(ctx), name)
		})
	}
}

// Behind a window and requests for one permit each, a forecast is exact, and quick to know.
func TestForecastsAtAWindow(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			limit := reserve.Must(window.New(7, time.Second))
			for range random.IntN(7) {
				_, err := limit.Reserve(ctx, 1)
				require.NoError(t, err)
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
			q := reserve.Must(fair.New(limit, []fair.Class{{Name: "people", Priority: 1}, {Name: "batch"}}))
			var all sync.WaitGroup
			for _, class := range []string{"people", "batch"} {
				for i := range random.IntN(30) {
					n := 1
					if class == "batch" && i > 20 {
						n = 1 + random.IntN(7)
					}
					r, err := q.Class(class).ReserveWithin(ctx, n, reserve.Forever)
					require.NoError(t, err)
					forecast := r.At()
					all.Go(func() {
						require.NoError(t, r.Wait(ctx))
						require.WithinDuration(t, forecast, time.Now(), time.Microsecond, "seed %d", seed)
					})
				}
			}
			all.Wait()
		})
	}
}

// A request that is refused for its deadline, while 10,000 others wait.
func BenchmarkRefused(b *testing.B) {
	for name, limit := range map[string]*reserve.Limiter{
		"bursty": reserve.Must(pace.NewBursty(1e-3)), "window": reserve.Must(window.New(10, time.Hour)),
	} {
		b.Run(name, func(b *testing.B) {
			q := reserve.Must(fair.New(limit, []fair.Class{{Name: "people", Priority: 1}, {Name: "batch"}}))
			for i := range 10_000 {
				if _, err := q.Class([]string{"people", "batch"}[i&1]).ReserveWithin(ctx, 1, reserve.Forever); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := q.Class("batch").ReserveWithin(ctx, 1, time.Minute); err == nil {
					b.Fatal("not refused")
				}
			}
		})
	}
}
