package reserve_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// BenchmarkChangesWith100000Asleep: what a caller of PauseUntil and Retime waits while 100,000 sleep, each with a
// deadline. One operation is one of them.
func BenchmarkChangesWith100000Asleep(b *testing.B) {
	for name, l := range map[string]*reserve.Limiter{
		"bursty": reserve.Must(pace.NewBursty(1000, pace.WithBurst(0))),
		"window": reserve.Must(window.New(1000, time.Second)),
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 1000*time.Hour)
		var all sync.WaitGroup
		var asleep int
		for range 100_000 {
			all.Go(func() { _, _ = l.Acquire(ctx, 1) })
		}
		for asleep < 97_000 {
			time.Sleep(10 * time.Millisecond)
			asleep = l.Snapshot().Waiting
		}
		at := time.Now()
		b.Run(name+"/PauseUntil", func(b *testing.B) {
			for b.Loop() {
				at = at.Add(10 * time.Second)
				l.PauseUntil(at)
			}
		})
		b.Run(name+"/Retime", func(b *testing.B) {
			rate := 1000.
			for b.Loop() {
				rate = 1999 - rate
				_ = l.Retime(rate)
			}
		})
		cancel()
		all.Wait()
	}
}
