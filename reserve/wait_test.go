package reserve_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// In a bubble the limiter uses the real clock, which is the bubble's.
func bubble(t *testing.T, test func(t *testing.T)) { t.Helper(); synctest.Test(t, test) }

func TestAcquireTakesExactlyTheTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(7))
		begin := time.Now()
		for range 50 {
			_, err := l.Acquire(ctx, 1)
			require.NoError(t, err)
		}
		require.Equal(t, 49*s/7, time.Since(begin).Truncate(time.Nanosecond))
	})
}

func TestAcquireReturnsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(warmup.New(2, 4*s))
		for i, want := range []time.Duration{0, 1375 * ms, 1125 * ms, 875 * ms, 625 * ms, 500 * ms} {
			begin := time.Now()
			waited, err := l.Acquire(ctx, 1)
			require.NoError(t, err)
			require.Equal(t, want, waited, i)
			require.Equal(t, want, time.Since(begin), i)
		}
		waited, err := reserve.Acquire(ctx, reserve.All(l, reserve.Must(pace.NewBursty(100))), 1)
		require.NoError(t, err)
		require.Equal(t, 500*ms, waited)
	})
}

// 64 goroutines get one slot each, in the order in which they came.
func TestWaitersAreServedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(100))
		begin := time.Now()
		var mu sync.Mutex
		var served []int
		var at []time.Duration
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				_, err := l.Acquire(ctx, 1)
				mu.Lock()
				defer mu.Unlock()
				served, at = append(served, i), append(at, time.Since(begin))
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		for i := range served {
			require.Equal(t, i, served[i])
			require.Equal(t, time.Duration(i)*10*ms, at[i])
		}
	})
}

func TestCancelledWaitGivesBack(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, l *reserve.Limiter) error{
		"Acquire": func(ctx context.Context, l *reserve.Limiter) error { _, err := l.Acquire(ctx, 3); return err },
		"Reservation.Wait": func(ctx context.Context, l *reserve.Limiter) error {
			r, _ := l.Reserve(ctx, 3)
			return r.Wait(ctx)
		},
		"All": func(ctx context.Context, l *reserve.Limiter) error {
			_, err := reserve.Acquire(ctx, reserve.All(l, reserve.Must(pace.NewBursty(1))), 3)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := reserve.Must(pace.NewBursty(1))
				require.True(t, l.TryAcquire(5))
				begin := time.Now()
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(2*s, func() { cancel(errGone) })
				require.Equal(t, errGone, wait(ctx, l))
				require.Equal(t, 2*s, time.Since(begin))
				require.Equal(t, begin.Add(5*s), l.NextFree())
			})
		})
	}
}

func TestDeadlineDuringAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1))
		require.True(t, l.TryAcquire(5))
		begin := time.Now()
		ctx, cancel := context.WithTimeout(ctx, 6*s)
		defer cancel()
		time.AfterFunc(2*s, func() { l.PauseUntil(begin.Add(10 * s)) })
		waited, err := l.Acquire(ctx, 1)
		require.Equal(t, &reserve.WaitError{Wait: 11 * s, MaxWait: 4 * s, Cause: context.DeadlineExceeded}, err)
		require.Equal(t, 2*s, waited)
		require.Equal(t, 2*s, time.Since(begin), "gives up at once")
		require.Equal(t, begin.Add(13*s), l.NextFree(), "its slot is for others")
	})
}

// At a pause all callers whose deadlines no longer fit give up at once, and those of the others that fit only then sleep
// on.
func TestDeadlinesAtAPause(t *testing.T) {
	for seed := range uint64(5) {
		bubble(t, func(t *testing.T) {
			const n, pause = 600, 100 * s
			random := rand.New(rand.NewPCG(seed, 3))
			l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
			require.True(t, l.TryAcquire(1))
			begin, deadlines, went := time.Now(), make([]time.Duration, n), make([]time.Duration, n)
			var all sync.WaitGroup
			for i := range n {
				deadlines[i] = time.Duration(i+1)*s + time.Duration(random.IntN(130))*s
				all.Go(func() {
					ctx, cancel := context.WithTimeout(ctx, deadlines[i])
					defer cancel()
					_, err := l.Acquire(ctx, 1)
					if went[i] = time.Since(begin); err != nil {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						went[i] = -went[i] - 1
					}
				})
				synctest.Wait()
			}
			l.PauseUntil(begin.Add(pause))
			all.Wait()
			at := pause + s
			for i, deadline := range deadlines {
				if at > deadline {
					require.Equal(t, -time.Duration(1), went[i], "seed %d, caller %d: gives up at once", seed, i)
				} else {
					require.Equal(t, at, went[i], "seed %d, caller %d", seed, i)
					at += s
				}
			}
		})
	}
}

func TestSleeperSleepsOnThroughAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1))
		require.True(t, l.TryAcquire(5))
		begin := time.Now()
		time.AfterFunc(2*s, func() { l.PauseUntil(begin.Add(4 * s)) })
		time.AfterFunc(3*s, func() { l.PauseUntil(begin.Add(6 * s)) })
		time.AfterFunc(3*s, func() { l.PauseUntil(begin.Add(5 * s)) }) // earlier: nothing
		waited, err := l.Acquire(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, 9*s, waited)
		require.Equal(t, 9*s, time.Since(begin))
	})
}

func TestPause(t *testing.T) {
	b := limitertest.Bursty(t, 1)
	b.Advance(500 * ms)
	due := b.Waits(1, 0)
	later := b.Waits(1, 500*ms) // half a permit was stored
	b.PauseUntil(b.Now().Add(10 * s))
	require.Zero(t, due.Delay(), "what was due stays due")
	require.Equal(t, b.Now(), due.At())
	require.Equal(t, 10*s+500*ms, later.Delay())
	require.False(t, b.TryAcquire(1))
	b.Advance(4 * s)
	require.Equal(t, 6*s+500*ms, later.Delay())
	require.Equal(t, 7*s+500*ms, b.FreeIn())
	b.PauseUntil(b.Now().Add(s)) // earlier
	require.Equal(t, 6*s+500*ms, later.Delay())
	b.PauseUntil(b.Now().Add(8 * s)) // later
	require.Equal(t, 8*s+500*ms, later.Delay())
	_, err := b.ReserveWithin(ctx, 1, 9*s)
	require.Equal(t, &reserve.WaitError{Wait: 9*s + 500*ms, MaxWait: 9 * s}, err)
	third := b.Waits(1, 9*s+500*ms)
	b.Advance(8*s + 500*ms)
	require.Zero(t, later.Delay())
	require.Equal(t, 1*s, third.Delay())
	require.Zero(t, due.Delay())
	require.Equal(t, 12*s+500*ms, b.Since(due.At()), "where it was")

	// Nothing is saved up, and what is reserved meanwhile is due at the end.
	b = limitertest.Bursty(t, 10)
	b.PauseUntil(b.Now().Add(time.Hour))
	b.Advance(time.Hour - s)
	require.Zero(t, b.Stored())
	first := b.Waits(1, s)
	second := b.Waits(1, s+100*ms)
	first.Cancel() // its time has not come
	require.Equal(t, s, second.Delay(), "it has moved up")
	b.Advance(s)
	require.Zero(t, second.Delay())
	b.Advance(50 * ms)
	require.Zero(t, b.Stored())

	// A second pause moves what the first one left, and only that.
	r := b.Waits(1, 50*ms)
	b.PauseUntil(b.Now().Add(s))
	require.Equal(t, s+50*ms, r.Delay())
	require.Equal(t, 50*ms+s, b.Since(second.At())+s)
}

func TestWaitOnWhatWasCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1))
		require.True(t, l.TryAcquire(5))
		r, err := l.Reserve(ctx, 1)
		require.NoError(t, err)
		begin := time.Now()
		time.AfterFunc(s, func() { r.Cancel() })
		require.ErrorIs(t, r.Wait(ctx), reserve.ErrCancelled)
		require.Equal(t, s, time.Since(begin), "at once")
		require.ErrorIs(t, r.Wait(ctx), reserve.ErrCancelled)
		require.Equal(t, begin.Add(5*s), l.NextFree())

		var none reserve.Reservation
		none.Cancel()
		none.Settle(3)
		require.ErrorIs(t, none.Wait(ctx), reserve.ErrCancelled)
		require.Zero(t, none.Permits())
		require.Zero(t, none.Delay())
		require.True(t, none.At().IsZero())
	})
}

// With a fake clock nothing but that clock wakes a sleeper.
func TestFakeClockWaits(t *testing.T) {
	watchdog.Start(t)
	clock := clockwork.NewFakeClock()
	l := reserve.Must(pace.NewBursty(1, reserve.WithClock(clock)))
	require.True(t, l.Allow())
	done := make(chan time.Duration)
	go func() {
		waited, _ := l.Acquire(ctx, 1)
		done <- waited
	}()
	require.NoError(t, clock.BlockUntilContext(ctx, 1))
	clock.Advance(999 * ms)
	l.PauseUntil(clock.Now().Add(5 * s)) // wakes it, and it sleeps on
	require.NoError(t, clock.BlockUntilContext(ctx, 1))
	clock.Advance(5*s + ms)
	require.Equal(t, 6*s, <-done)
}

func TestAll(t *testing.T) {
	second := limitertest.Bursty(t, 10)
	hour := limitertest.Bursty(t, reserve.Per(36, time.Hour),
		reserve.WithClock(second.FakeClock), reserve.WithStored(1), pace.WithCapacity(5))
	both := reserve.All(second.Limiter, hour.Limiter)
	r, err := both.ReserveWithin(ctx, 1, 0)
	require.NoError(t, err)
	require.Zero(t, r.Delay())
	r, err = both.ReserveWithin(ctx, 1, s)
	require.NoError(t, err)
	require.Equal(t, 100*ms, r.Delay(), "the latest of both")
	require.Equal(t, second.Now().Add(100*ms), r.At())
	require.Equal(t, 1, r.Permits())
	next := second.FreeIn()
	_, err = both.ReserveWithin(ctx, 1, s)
	require.Equal(t, &reserve.WaitError{Wait: 100 * s, MaxWait: s, Limit: "2 of 2"}, err)
	require.Equal(t, next, second.FreeIn(), "the first got its permit back")
	r.Settle(3)
	require.Equal(t, next+200*ms, second.FreeIn())
	r.Cancel()
	require.Equal(t, next+200*ms, second.FreeIn())

	everything := reserve.All()
	r, err = everything.ReserveWithin(ctx, 5, 0)
	require.NoError(t, err)
	require.Zero(t, r.Delay())
	require.NoError(t, r.Wait(ctx))
	require.Equal(t, 5, r.Permits())
}

// A tickingClock is later each time one looks, as a real one is.
type tickingClock struct {
	*clockwork.FakeClock
	ticks, timers atomic.Int64
}

func (c *tickingClock) Since(t time.Time) time.Duration {
	return c.FakeClock.Since(t) + time.Duration(c.ticks.Add(1))
}

func (c *tickingClock) NewTimer(d time.Duration) clockwork.Timer {
	c.timers.Add(1)
	return c.FakeClock.NewTimer(d)
}

func TestAClockThatTicksMakesOneTimer(t *testing.T) {
	watchdog.Start(t)
	clock := &tickingClock{FakeClock: clockwork.NewFakeClock()}
	l := reserve.Must(pace.NewBursty(1, reserve.WithClock(clock)))
	require.True(t, l.Allow())
	done := make(chan error)
	go func() { done <- l.Wait(ctx) }()
	require.NoError(t, clock.BlockUntilContext(ctx, 1))
	clock.Advance(s)
	require.NoError(t, <-done)
	require.Equal(t, int64(1), clock.timers.Load())
}

// A fake clock that is moved on before the sleeper has its timer.
func TestAClockThatJumpsBeforeTheTimer(t *testing.T) {
	watchdog.Start(t)
	clock := &jumpingClock{FakeClock: clockwork.NewFakeClock()}
	l := reserve.Must(pace.NewBursty(1, reserve.WithClock(clock)))
	require.True(t, l.Allow())
	done := make(chan error)
	go func() { done <- l.Wait(ctx) }()
	require.NoError(t, clock.BlockUntilContext(ctx, 1))
	clock.Advance(400 * ms)
	require.NoError(t, <-done)
}

// A jumpingClock moves on by 600 ms right before it makes a timer.
type jumpingClock struct{ *clockwork.FakeClock }

func (c *jumpingClock) NewTimer(d time.Duration) clockwork.Timer {
	c.Advance(600 * ms)
	return c.FakeClock.NewTimer(d)
}

func TestAcquireOfAllCountsAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1))
		require.True(t, l.TryAcquire(5))
		begin := time.Now()
		time.AfterFunc(2*s, func() { l.PauseUntil(begin.Add(12 * s)) })
		waited, err := reserve.Acquire(ctx, reserve.All(l), 1)
		require.NoError(t, err)
		require.Equal(t, 15*s, waited)
	})
}

// The last of several is waited for first: if that can't be reached, no caller need wait for the others.
func TestAllWaitsForTheLastFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		soon, late := reserve.Must(pace.NewBursty(1)), reserve.Must(pace.NewBursty(1))
		require.True(t, soon.TryAcquire(1) && late.TryAcquire(2))
		r, err := reserve.All(soon, late).ReserveWithin(ctx, 1, reserve.Forever)
		require.NoError(t, err)
		late.PauseUntil(time.Now().Add(time.Hour))
		soonOver, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		begin := time.Now()
		require.ErrorAs(t, r.Wait(soonOver), new(*reserve.WaitError))
		require.Zero(t, time.Since(begin))
		require.Equal(t, s, soon.NextFree().Sub(begin), "given back")
	})
}
