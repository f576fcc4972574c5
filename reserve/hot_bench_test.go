package reserve_test

import (
	"testing"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// BenchmarkRefused: TryAcquire that is refused, from one goroutine and from eight, beside a reading of the clock.
func BenchmarkRefused(b *testing.B) {
	l := reserve.Must(pace.NewBursty(1e-6))
	l.TryAcquire(1000)
	l.TryAcquire(1)
	begin := time.Now()
	var sink time.Duration
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			sink = time.Since(begin)
		}
	})
	_ = sink
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			l.TryAcquire(1)
		}
	})
	b.Run("eight", func(b *testing.B) {
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.TryAcquire(1)
			}
		})
	})
	l.Snapshot()
	b.Run("one counted", func(b *testing.B) {
		for b.Loop() {
			l.TryAcquire(1)
		}
	})
	b.Run("eight counted", func(b *testing.B) {
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				l.TryAcquire(1)
			}
		})
	})
}

// BenchmarkReserveAndCancel: behind a queue of 10,000 requests, a request that gives up at once.
func BenchmarkReserveAndCancel(b *testing.B) {
	l := reserve.Must(pace.NewBursty(1e-3))
	for range 10_000 {
		_, _ = l.Reserve(ctx, 1)
	}
	for b.Loop() {
		r, _ := l.Reserve(ctx, 1)
		r.Cancel()
	}
}
