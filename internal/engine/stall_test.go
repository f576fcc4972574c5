package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// A program is stopped for two seconds (SIGSTOP) while callers wait for a window. Then it lets no more go than
// the window allows: the callers whose times have passed are in it.
func TestAStoppedProgramAndAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const per = 100 * time.Millisecond
		l := reserve.Must(window.New(100, per))
		require.True(t, l.TryAcquire(100))
		var all sync.WaitGroup
		var mu sync.Mutex
		went := map[time.Time]int{}
		for range 164 {
			all.Go(func() {
				_, err := l.Acquire(context.Background(), 1)
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				went[time.Now()]++
			})
			synctest.Wait()
		}
		time.Sleep(50 * time.Millisecond)
		(*engine.Limiter)(l).Stall(2 * time.Second)
		begin := time.Now()
		require.Zero(t, l.TakeUpTo(100), "there are callers in front")
		all.Wait()
		require.False(t, l.TryAcquire(37))
		require.True(t, l.TryAcquire(36), "what the window has left beside the last 64")
		var late int
		for at, n := range went {
			require.LessOrEqual(t, n, 100)
			if !at.Before(begin.Add(per)) {
				late += n
			}
		}
		require.Equal(t, 64, late, "of 164 that were due during the stop, 100 go after it, and these a window later")
	})
}
