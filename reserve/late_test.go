package reserve_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// A lateContext takes long to answer a caller that has woken: as if that were scheduled late.
type lateContext struct {
	context.Context
	asked int
}

func (c *lateContext) Done() <-chan struct{} {
	if c.asked++; c.asked == 3 { // before the request, when it sleeps, when it wakes
		time.Sleep(time.Minute)
	}
	return c.Context.Done()
}

// A caller that wakes late keeps none of those behind it from going on time.
func TestACallerThatWakesLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
		require.True(t, l.TryAcquire(1))
		begin := time.Now()
		var all sync.WaitGroup
		all.Go(func() { _, _ = l.Acquire(&lateContext{Context: t.Context()}, 1) })
		synctest.Wait()
		var went [5]time.Duration
		for i := range went {
			all.Go(func() {
				_, _ = l.Acquire(ctx, 1)
				went[i] = time.Since(begin)
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, [5]time.Duration{2 * s, 3 * s, 4 * s, 5 * s, 6 * s}, went)
		require.Equal(t, time.Minute+s, time.Since(begin))
	})
	bubble(t, func(t *testing.T) { // with slack
		l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0), reserve.WithSlack(100*ms)))
		require.True(t, l.TryAcquire(1))
		begin := time.Now()
		var all sync.WaitGroup
		all.Go(func() { _, _ = l.Acquire(&lateContext{Context: t.Context()}, 1) })
		synctest.Wait()
		all.Go(func() {
			_, _ = l.Acquire(ctx, 1)
			require.InDelta(t, 2*s, time.Since(begin), float64(200*ms))
		})
		all.Wait()
	})
}

// With slack callers wake late, by less than that, and together; they go in order, at the rate.
func TestSlack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const rate, slack = 1000, 10 * ms
		l := reserve.Must(pace.NewBursty(rate, pace.WithBurst(0), reserve.WithSlack(slack)))
		var all sync.WaitGroup
		var mu sync.Mutex
		moments := map[time.Time]int{}
		for range 500 {
			all.Go(func() {
				r, err := l.Reserve(ctx, 1)
				if err != nil || r.Wait(ctx) != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				moments[time.Now()]++
				if late := time.Since(r.At()); late < 0 || late >= slack {
					t.Errorf("%v late", late)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		require.LessOrEqual(t, len(moments), 52, "moments at which callers went")
		require.Equal(t, uint64(500), l.Snapshot().Granted)
	})
	_, err := pace.NewBursty(1, reserve.WithSlack(-1))
	require.Equal(t, &reserve.ValueError{Package: "pace", Name: "WithSlack", Value: time.Duration(-1), Want: "0 or more"}, err)
}

// An evilClock panics when it is told to.
type evilClock struct {
	clockwork.Clock
	evil atomic.Bool
}

func (c *evilClock) Since(t time.Time) time.Duration {
	if c.evil.Load() {
		panic(errGone)
	}
	return c.Clock.Since(t)
}

// A clock that panics while a caller sleeps leaves the limiter unlocked, and its place to those behind.
func TestAClockThatPanics(t *testing.T) {
	watchdog.Start(t)
	fake := clockwork.NewFakeClock()
	clock := &evilClock{Clock: fake}
	l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0), reserve.WithClock(clock)))
	require.True(t, l.TryAcquire(5))
	over := make(chan any)
	go func() {
		defer func() { over <- recover() }()
		_, _ = l.Acquire(ctx, 3)
	}()
	require.NoError(t, fake.BlockUntilContext(t.Context(), 1))
	clock.evil.Store(true)
	fake.Advance(5 * s)
	require.Equal(t, errGone, <-over)
	for _, call := range []func(){
		func() { l.TryAcquire(1) }, func() { _, _ = l.Reserve(ctx, 1) }, func() { l.Snapshot() }, func() { l.TakeUpTo(1) },
		func() { _ = l.Retime(2) }, func() { l.Forecast(1) }, func() { _, _ = l.Peek(1) }, func() { l.Resume() },
	} {
		require.PanicsWithValue(t, errGone, call)
	}
	clock.evil.Store(false)
	require.True(t, l.TryAcquire(1))
	require.Equal(t, s, l.NextFree().Sub(fake.Now()), "what the caller had reserved was given back")
}

// A caller that alone is late looks like a stall until the next caller is due, and causes no second one.
func TestALateCallerAndAWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(window.New(1, s))
		require.True(t, l.TryAcquire(1))
		begin := time.Now()
		var all sync.WaitGroup
		all.Go(func() { _, _ = l.Acquire(&lateContext{Context: t.Context()}, 1) })
		synctest.Wait()
		var went [5]time.Duration
		for i := range went {
			all.Go(func() {
				_, _ = l.Acquire(ctx, 1)
				went[i] = time.Since(begin)
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, [5]time.Duration{3 * s, 4 * s, 5 * s, 6 * s, 7 * s}, went)
	})
}
