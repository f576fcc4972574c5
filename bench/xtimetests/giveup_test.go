package main

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	real "golang.org/x/time/rate"

	pace "github.com/nextfree/pace/reserve/plug/xtime/rate"
)

// What client-go does at QPS 20 and a burst of 40: 64 callers wait for their turns again and again, and half of them
// give up after a second, and ask again. With pace's body all of the 20 a second go. In golang.org/x/time/rate each of
// those who gave up has pushed the others back, and next to none go.
func TestHalfOfTheCallersGiveUp(t *testing.T) {
	const qps, burst = 20, 40
	ofPace := share(t, pace.NewLimiter(qps, burst), qps)
	ofXtime := share(t, real.NewLimiter(qps, burst), qps)
	t.Logf("of %d/s go: pace %.1f %%, golang.org/x/time/rate %.1f %%", qps, 100*ofPace, 100*ofXtime)
	require.Greater(t, ofPace, 0.95)
	require.LessOrEqual(t, ofPace, 1.0)
	require.Less(t, ofXtime, 0.10)
}

// share returns which share of the permits of the third minute is used.
func share(t *testing.T, lim interface{ Wait(context.Context) error }, qps float64) float64 {
	used := 0
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		all, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var callers sync.WaitGroup
		for i := range 64 {
			callers.Go(func() {
				for all.Err() == nil {
					ctx, cancel := context.WithCancel(all)
					if i%2 == 0 {
						time.AfterFunc(time.Second, cancel)
					}
					err := lim.Wait(ctx)
					cancel()
					if now := time.Since(begin); err == nil && now > 2*time.Minute && now <= 3*time.Minute {
						mu.Lock()
						used++
						mu.Unlock()
					}
				}
			})
		}
		time.Sleep(3 * time.Minute)
		stop()
		callers.Wait()
	})
	return float64(used) / qps / time.Minute.Seconds()
}
