package window_test

import (
	"context"
	"testing"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// Each of these is one call, on the real clock.
func BenchmarkWindow(b *testing.B) {
	ctx := context.Background()
	fast := func() *reserve.Limiter { return reserve.Must(window.New(10_000, 10*time.Microsecond)) }
	slow := func() *reserve.Limiter { return reserve.Must(window.New(1000, time.Hour)) }

	b.Run("TryAcquire granted", func(b *testing.B) {
		l := fast()
		for b.Loop() {
			l.TryAcquire(1)
		}
	})
	b.Run("TryAcquire refused", func(b *testing.B) {
		l := slow()
		l.TryAcquire(1000)
		for b.Loop() {
			l.TryAcquire(1)
		}
	})
	b.Run("Reserve granted", func(b *testing.B) {
		l := fast()
		for b.Loop() {
			_, _ = l.Reserve(ctx, 1)
		}
	})
	b.Run("Reserve and Cancel behind 100000", func(b *testing.B) {
		l := slow()
		for range 100_000 {
			_, _ = l.Reserve(ctx, 1)
		}
		for b.Loop() {
			r, _ := l.Reserve(ctx, 1)
			r.Cancel()
		}
	})
	b.Run("Reserve 1 to 5 in a growing queue", func(b *testing.B) {
		l := slow()
		n := 0
		for b.Loop() {
			n++
			_, _ = l.Reserve(ctx, 1+n*7919%5)
		}
	})
	b.Run("NextFree and Stored beside 100000 of 1 to 5", func(b *testing.B) {
		l := slow()
		for n := range 100_000 {
			_, _ = l.Reserve(ctx, 1+n*7919%5)
		}
		for b.Loop() {
			_ = l.NextFree()
			l.Stored()
		}
	})
	b.Run("time.Since", func(b *testing.B) {
		begin := time.Now()
		for b.Loop() {
			_ = time.Since(begin)
		}
	})
}
