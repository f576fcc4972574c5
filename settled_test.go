package pace_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A bucket gives back what it would hold had it known. While a request for more than its capacity waits, less overflows
// than if the request had been as small as it turned out. So the capacity should be the largest estimate.
func TestSettledAboveTheCapacity(t *testing.T) {
	for capacity, used := range map[float64]float64{250: 500, 500: 997} {
		synctest.Test(t, func(t *testing.T) {
			limiter := reserve.Must(pace.NewTokenBucket(1000, capacity))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var mu sync.Mutex
			sum := 0
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for {
						r, err := limiter.Reserve(ctx, 500)
						if err != nil || r.Wait(ctx) != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
						r.Settle(250)
						mu.Lock()
						sum += 250
						mu.Unlock()
					}
				})
			}
			all.Wait()
			require.InDelta(t, used, float64(sum)/60, 15, capacity)
		})
	}
}
