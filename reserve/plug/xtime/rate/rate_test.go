package rate

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What becomes better does in pace's mode alone.
func better(t *testing.T) {
	if Strict {
		t.Skip("built with -tags xtimestrict")
	}
}

func TestZeroValue(t *testing.T) {
	var lim Limiter
	require.False(t, lim.Allow())
	require.False(t, lim.Reserve().OK())
	require.Equal(t, InfDuration, lim.Reserve().Delay())
	require.ErrorContains(t, lim.Wait(context.Background()), "rate: Wait(n=1) exceeds limiter's burst 0")
	lim.SetLimit(10)
	lim.SetBurst(2)
	require.Equal(t, Limit(10), lim.Limit())
	require.Equal(t, 2, lim.Burst())
}

// golang/go#71360, #65508: callers that gave up are not waited for.
func TestThoseWhoGiveUpAreNotWaitedFor(t *testing.T) {
	better(t)
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			lim := NewLimiter(10, 1)
			require.True(t, lim.Allow())
			ctx, cancel := context.WithCancel(context.Background())
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() { require.ErrorIs(t, lim.Wait(ctx), context.Canceled) })
			}
			synctest.Wait()
			cancel()
			all.Wait()
			begin := time.Now()
			require.NoError(t, lim.Wait(context.Background()))
			require.Equal(t, 100*time.Millisecond, time.Since(begin))
		})
	}
}

// temporalio/temporal#7590: a reservation can be cancelled after its time.
func TestCancelledLate(t *testing.T) {
	better(t)
	now := time.Now()
	lim := NewLimiter(1, 5)
	r := lim.ReserveN(now, 5)
	require.Zero(t, r.DelayFrom(now))
	r.CancelAt(now.Add(time.Second))
	require.True(t, lim.AllowN(now.Add(time.Second), 5))
	r.CancelAt(now.Add(time.Second)) // once
	require.False(t, lim.AllowN(now.Add(time.Second), 1))
}

// In any order, and the others move up.
func TestMovesUp(t *testing.T) {
	better(t)
	now := time.Now()
	lim := NewLimiter(1, 1)
	var all []*Reservation
	for i := range 5 {
		all = append(all, lim.ReserveN(now, 1))
		require.Equal(t, time.Duration(i)*time.Second, all[i].DelayFrom(now))
	}
	all[1].CancelAt(now)
	all[3].CancelAt(now)
	require.Equal(t, time.Second, all[2].DelayFrom(now))
	require.Equal(t, 2*time.Second, all[4].DelayFrom(now))
}

func TestErrors(t *testing.T) {
	lim := NewLimiter(1, 1)
	require.True(t, lim.Allow())
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := lim.Wait(ctx)
	require.EqualError(t, err, "rate: Wait(n=1) would exceed context deadline")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualError(t, lim.WaitN(context.Background(), 2), "rate: Wait(n=2) exceeds limiter's burst 1")
	cause := errors.New("cause")
	done, stop := context.WithCancelCause(context.Background())
	stop(cause)
	require.Equal(t, context.Canceled, lim.Wait(done), "Err, as in golang.org/x/time/rate, not the cause")
}

func TestInf(t *testing.T) {
	lim := NewLimiter(Inf, 0)
	require.True(t, lim.AllowN(time.Now(), 1e6))
	require.NoError(t, lim.WaitN(context.Background(), 1e6))
	require.Zero(t, lim.ReserveN(time.Now(), 1e6).Delay())
	require.Equal(t, Inf, Every(0))
	require.Equal(t, Limit(2), Every(500*time.Millisecond))
	lim.SetLimit(1)
	lim.SetBurst(1)
	require.False(t, lim.AllowN(time.Now(), 2))
	nan := NewLimiter(Limit(math.NaN()), 1)
	require.False(t, nan.AllowN(time.Now(), 2))
}

// Zero tokens are free, but wait for what is owed.
func TestNothing(t *testing.T) {
	now := time.Now()
	lim := NewLimiter(1, 1)
	require.True(t, lim.AllowN(now, 0))
	lim.ReserveN(now, 1)
	lim.ReserveN(now, 1)
	require.False(t, lim.AllowN(now, 0))
	require.Equal(t, time.Second, lim.ReserveN(now, 0).DelayFrom(now).Round(time.Millisecond))
	require.InDelta(t, -1, lim.TokensAt(now), 1e-6)
}

// A clock that steps back.
func TestTimeThatStepsBack(t *testing.T) {
	better(t)
	now := time.Now()
	lim := NewLimiter(10, 3)
	require.True(t, lim.AllowN(now.Add(time.Second), 3))
	for range 10 {
		require.False(t, lim.AllowN(now, 1))
		require.False(t, lim.AllowN(now.Add(time.Second), 1))
	}
}

// Times of a fake clock, without a monotonic reading and long ago.
func TestFakeTimes(t *testing.T) {
	now := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	lim := NewLimiter(1, 2)
	require.True(t, lim.AllowN(now, 2))
	require.False(t, lim.AllowN(now.Add(999*time.Millisecond), 1))
	require.True(t, lim.AllowN(now.Add(time.Second), 1))
	require.Equal(t, time.Second, lim.ReserveN(now.Add(time.Second), 1).DelayFrom(now.Add(time.Second)))
}

// All methods at once, under the race detector.
func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := NewLimiter(1000, 10)
		var went atomic.Int64
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for i := range 200 {
					switch i % 5 {
					case 0:
						if lim.Allow() {
							went.Add(1)
						}
					case 1:
						r := lim.Reserve()
						r.Cancel()
					case 2:
						lim.SetLimit(1000)
						_ = lim.Tokens() + float64(lim.Limit()) + float64(lim.Burst())
					default:
						if lim.Wait(context.Background()) == nil {
							went.Add(1)
						}
					}
				}
			})
		}
		begin := time.Now()
		all.Wait()
		require.LessOrEqual(t, float64(went.Load()), 10+1000*time.Since(begin).Seconds()+1)
	})
}

func TestPace(t *testing.T) {
	better(t)
	lim := NewLimiter(10, 5)
	require.True(t, lim.Pace().TryAcquire(4))
	require.InDelta(t, 1, lim.Tokens(), 0.1)
}
