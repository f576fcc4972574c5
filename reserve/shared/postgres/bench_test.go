//go:build unix

package postgres_test

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
	"github.com/nextfree/pace/reserve/shared/postgres"
)

// Decisions on one key from one process, on a server whose disk is told to write (fsync = on).
func BenchmarkAcquire(b *testing.B) {
	s := own(b, "fsync = on")
	db := s.connect(b)
	require.NoError(b, postgres.Create(b.Context(), db, "limits"))
	for _, mode := range []struct {
		name string
		opts []postgres.Option
	}{{"off", nil}, {"on", []postgres.Option{postgres.Durable()}}} {
		store, err := postgres.Open(db, "limits", mode.opts...)
		require.NoError(b, err)
		for _, callers := range []int{1, 64} {
			name := map[int]string{1: "1 caller", 64: "64 callers"}[callers]
			b.Run("synchronous_commit="+mode.name+"/"+name, func(b *testing.B) {
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
}
