package pace_test

import (
	"context"
	"testing"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// The numbers to compare with: what a reading of the clock costs on this machine.
func BenchmarkClock(b *testing.B) {
	begin := time.Now()
	var sum time.Duration
	for b.Loop() {
		sum += time.Since(begin)
	}
	_ = sum
}

func limiters() map[string]*reserve.Limiter {
	return map[string]*reserve.Limiter{
		"bursty": reserve.Must(pace.NewBursty(1e9)),
		"warmup": reserve.Must(warmup.New(1e9, time.Second)),
	}
}

func BenchmarkTryAcquire(b *testing.B) {
	for name, l := range limiters() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.TryAcquire(1)
			}
		})
		b.Run(name+"/refused", func(b *testing.B) {
			l := reserve.Must(pace.NewBursty(1e-3))
			l.Allow()
			b.ReportAllocs()
			for b.Loop() {
				l.TryAcquire(1)
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.TryAcquire(1)
				}
			})
		})
	}
}

func BenchmarkReserve(b *testing.B) {
	ctx := context.Background()
	for name, l := range limiters() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := l.Reserve(ctx, 1)
				if err != nil || r.Permits() != 1 {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/cancel", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, _ := l.Reserve(ctx, 1)
				r.Cancel()
			}
		})
	}
}
