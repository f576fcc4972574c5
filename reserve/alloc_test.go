//go:build !race

package reserve_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// No method that doesn't sleep allocates; refusals allocate their error. (The race
// detector allocates by itself.)
func TestAllocations(t *testing.T) {
	for name, l := range map[string]*reserve.Limiter{
		"bursty":  reserve.Must(pace.NewBursty(1e6)),
		"upfront": reserve.Must(pace.NewBursty(1e6, reserve.PayUpfront())),
		"warm-up": reserve.Must(warmup.New(1e6, time.Second)),
	} {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		for method, call := range map[string]func(){
			"TryAcquire": func() { l.TryAcquire(1) },
			"Allow":      func() { l.Allow() },
			"Reserve":    func() { _, _ = l.Reserve(ctx, 1) },
			"Cancel": func() {
				r, _ := l.ReserveWithin(ctx, 2, time.Hour)
				r.Cancel()
			},
			"cancel older": func() {
				r, _ := l.Reserve(ctx, 2)
				_, _ = l.Reserve(ctx, 1)
				r.Cancel()
			},
			"Settle": func() {
				r, _ := l.Reserve(ctx, 2)
				r.Settle(5)
				r.Settle(1)
			},
			"the rest": func() {
				r, _ := l.Reserve(ctx, 1)
				_, _, _ = r.At(), r.Delay(), r.Permits()
				_, _, _, _ = l.Stored(), l.NextFree(), l.Rate(), l.Snapshot()
			},
		} {
			require.Zero(t, testing.AllocsPerRun(100, call), "%s %s", name, method)
		}
		require.NoError(t, l.SetRate(1e12)) // so that it needn't sleep
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = l.Acquire(ctx, 1) }), "%s Acquire", name)
	}
}

func TestSleepingAllocatesNothing(t *testing.T) {
	l := reserve.Must(pace.NewBursty(20_000, pace.WithBurst(0)))
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	for range 10 {
		_, _ = l.Acquire(ctx, 1)
	}
	require.Zero(t, testing.AllocsPerRun(50, func() { _, _ = l.Acquire(ctx, 1) }), "Acquire")
	require.Zero(t, testing.AllocsPerRun(50, func() { _ = l.Wait(ctx) }), "Wait")
	require.NoError(t, l.SetRate(400)) // 2.5 ms: a timer first
	require.Zero(t, testing.AllocsPerRun(20, func() { _, _ = l.Acquire(ctx, 1) }), "Acquire for longer")
	require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
		r, _ := l.Reserve(ctx, 1)
		_ = r.Wait(ctx)
	}), 1.0, "Reservation.Wait: at the most the reservation itself")
}
