package storetest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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

// Crowd measures one hot key: 2,000 decisions a second wanted by processes with two callers each. Open returns a
// store with its own connection.
func Crowd(b *testing.B, open func(b *testing.B) shared.Store) {
	for _, processes := range []int{1, 8, 32} {
		b.Run("processes="+strconv.Itoa(processes), func(b *testing.B) {
			policy := reserve.Must(pace.Bursty(2000))
			c := &counting{}
			var granted, failed atomic.Int64
			var all sync.WaitGroup
			begin := time.Now()
			for range processes {
				l, err := shared.NewIn(&counting{Store: open(b), on: c}, b.Name(), policy)
				require.NoError(b, err)
				for range 2 {
					all.Go(func() {
						for time.Since(begin) < 3*time.Second {
							if _, err := l.Acquire(context.Background(), max(1, 32/processes)); err != nil {
								failed.Add(1)
								time.Sleep(10 * time.Millisecond)
							} else {
								granted.Add(int64(max(1, 32/processes)))
							}
						}
					})
				}
			}
			all.Wait()
			b.ReportMetric(float64(granted.Load())/time.Since(begin).Seconds(), "permits/s")
			b.ReportMetric(float64(c.tried.Load())/float64(max(1, c.written.Load())), "tries/write")
			b.ReportMetric(float64(c.written.Load())/time.Since(begin).Seconds(), "writes/s")
			b.ReportMetric(float64(failed.Load()), "failed")
		})
	}
}

// A counting store counts tries and writes.
type counting struct {
	shared.Store
	on             *counting
	tried, written atomic.Int64
}

func (c *counting) Update(ctx context.Context, key string, f func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	err := c.Store.Update(ctx, key, func(now time.Time, old []byte) ([]byte, time.Duration, error) {
		value, keep, err := f(now, old)
		if err == nil {
			c.on.tried.Add(1)
		}
		return value, keep, err
	})
	if err == nil {
		c.on.written.Add(1)
	}
	return err
}
