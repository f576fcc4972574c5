package natskv_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/natskv"
)

// Decisions on one key from one process, which has the server in it.
func BenchmarkAcquire(b *testing.B) {
	js := connect(b, start(b, b.TempDir(), nil).ClientURL())
	bucket(b, js, "limits", 0)
	store, err := natskv.Open(js, "limits")
	require.NoError(b, err)
	for _, callers := range []int{1, 64} {
		name := map[int]string{1: "1 caller", 64: "64 callers"}[callers]
		b.Run(name, func(b *testing.B) {
			l, err := shared.NewIn(store, b.Name(), reserve.Must(pace.Bursty(1e9)), shared.WithTimeout(time.Minute))
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
