package storetest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// Bench measures decisions on one key, from 1 caller and from 64 callers of one process.
func Bench(b *testing.B, store shared.Store) {
	for _, callers := range []int{1, 64} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			policy := reserve.Must(pace.Bursty(1e9))
			l, err := shared.NewIn(store, b.Name(), policy, shared.WithTimeout(time.Minute))
			require.NoError(b, err)
			took := make([][]time.Duration, callers)
			begin := time.Now()
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range took {
				all.Go(func() {
					for range b.N/callers + 1 {
						from := time.Now()
						if _, err := l.Acquire(context.Background(), 1); err != nil {
							b.Error(err)
							return
						}
						took[i] = append(took[i], time.Since(from))
					}
				})
			}
			all.Wait()
			each := slices.Concat(took...)
			slices.Sort(each)
			b.ReportMetric(float64(len(each))/time.Since(begin).Seconds(), "decisions/s")
			b.ReportMetric(float64(each[len(each)/2])/1e3, "p50-us")
			b.ReportMetric(float64(each[len(each)*99/100])/1e3, "p99-us")
		})
	}
}
