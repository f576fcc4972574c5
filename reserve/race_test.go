package reserve_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// Goroutines do everything at once. What was granted and not given back never
// exceeds capacity + rate*time + what was borrowed last.
func TestEverythingAtOnce(t *testing.T) {
	const (
		rate       = 1e6
		goroutines = 16
		rounds     = 300
		most       = 9 // permits a request
	)
	for name, newLimiter := range map[string]func() *reserve.Limiter{
		"bursty": func() *reserve.Limiter { return reserve.Must(pace.NewBursty(rate, pace.WithCapacity(50))) },
		"upfront": func() *reserve.Limiter {
			return reserve.Must(pace.NewBursty(rate, pace.WithCapacity(50), reserve.PayUpfront()))
		},
		"warm-up": func() *reserve.Limiter { return reserve.Must(warmup.New(rate, 50*time.Microsecond)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLimiter()
				begin := time.Now()
				var granted atomic.Int64
				var all sync.WaitGroup
				for g := range goroutines {
					all.Go(func() {
						random := rand.New(rand.NewPCG(uint64(g), 1))
						for range rounds {
							n := 1 + random.IntN(most)
							switch random.IntN(8) {
							case 0:
								if l.TryAcquire(n) {
									granted.Add(int64(n))
								}
							case 1, 2:
								if _, err := l.Acquire(ctx, n); err != nil {
									t.Error(err)
								}
								granted.Add(int64(n))
							case 3:
								r, err := l.Reserve(ctx, n)
								if err != nil {
									t.Error(err)
								}
								r.Cancel()
							case 4:
								short, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(50))*time.Microsecond)
								if _, err := l.Acquire(short, n); err == nil {
									granted.Add(int64(n))
								}
								cancel()
							case 5:
								r, err := l.ReserveWithin(ctx, n, time.Millisecond)
								if err == nil {
									used := random.IntN(n + 1)
									if r.Wait(ctx) != nil {
										t.Error("not cancelled, but not granted")
									}
									r.Settle(used)
									granted.Add(int64(used))
								}
							case 6:
								_ = l.SetRate(rate / (1 + 0.01*float64(random.IntN(3)))) // little, so that the bound is tight
							case 7:
								if random.IntN(10) == 0 {
									l.PauseUntil(time.Now().Add(5 * time.Microsecond))
								}
								_, _, _ = l.Stored(), l.NextFree(), l.Rate()
							}
						}
					})
				}
				all.Wait()
				elapsed := time.Since(begin) + max(0, time.Until(l.NextFree()))
				limit := 50 + rate*elapsed.Seconds() + most
				require.LessOrEqual(t, float64(granted.Load()), limit)
				require.NotZero(t, granted.Load())
			})
		})
	}
}

// Saturated for a second of a bubble's time, by goroutines that give up, settle and
// cancel, a limiter lets through what it may, and not less.
func TestSaturated(t *testing.T) {
	for name, newLimiter := range map[string]func() *reserve.Limiter{
		"bursty": func() *reserve.Limiter { return reserve.Must(pace.NewBursty(1000, pace.WithCapacity(50))) },
		"upfront": func() *reserve.Limiter {
			return reserve.Must(pace.NewBursty(1000, pace.WithCapacity(50), reserve.PayUpfront()))
		},
		"warm-up": func() *reserve.Limiter { return reserve.Must(warmup.New(1000, 50*ms, reserve.WithStored(0))) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				l := newLimiter()
				begin := time.Now()
				var used, late atomic.Int64
				var all sync.WaitGroup
				for g := range 32 {
					all.Go(func() {
						random := rand.New(rand.NewPCG(uint64(g), 2))
						for time.Since(begin) < s {
							n := 1 + random.IntN(9)
							switch random.IntN(4) {
							case 0: // gives up in the middle
								short, cancel := context.WithCancel(ctx)
								time.AfterFunc(time.Duration(random.IntN(100))*ms, cancel)
								if _, err := l.Acquire(short, n); err == nil {
									used.Add(int64(n))
								}
								cancel()
							case 1: // needs less
								r, err := l.Reserve(ctx, n)
								if err != nil || r.Wait(ctx) != nil {
									t.Error("neither refused nor cancelled, but not granted")
								}
								less := random.IntN(n)
								r.Settle(less)
								used.Add(int64(less))
								late.Add(int64(n - less)) // none can go in their place any more
							default:
								if _, err := l.Acquire(ctx, n); err != nil {
									t.Error(err)
								}
								used.Add(int64(n))
							}
						}
					})
				}
				all.Wait()
				paid := 1000 * (time.Since(begin) + time.Until(l.NextFree())).Seconds()
				require.LessOrEqual(t, float64(used.Load()), 50+paid+9)
				require.GreaterOrEqual(t, float64(used.Load()+late.Load()), 0.9*paid)
			})
		})
	}
}

// A jumpy clock gives each reader a reading that may be old, as a goroutine has that
// read the clock and then waited for the lock.
type jumpyClock struct {
	*clockwork.FakeClock
	late atomic.Int64
}

func (c *jumpyClock) Since(t time.Time) time.Duration {
	return c.FakeClock.Since(t) - time.Duration(c.late.Load())
}

func TestStaleReadingsMintNothing(t *testing.T) {
	clock := &jumpyClock{FakeClock: clockwork.NewFakeClock()}
	l := reserve.Must(pace.NewBursty(1000, pace.WithCapacity(100), reserve.WithClock(clock)))
	require.True(t, l.TryAcquire(1))
	granted := 1
	for i := range 20_000 {
		if i%2 == 0 {
			clock.Advance(50 * time.Microsecond)
			clock.late.Store(0)
		} else {
			clock.late.Store(int64(10 * time.Millisecond)) // and back again
		}
		if l.TryAcquire(1) {
			granted++
		}
	}
	// 10,000 steps of 50 us, 0.5 s at 1,000/s; and the one borrowed at the end.
	require.LessOrEqual(t, granted, 501)
	require.GreaterOrEqual(t, granted, 499)

	// A stale reading is no reason to refuse, either.
	clock.Advance(time.Second)
	clock.late.Store(0)
	require.True(t, l.TryAcquire(1))
	clock.late.Store(int64(time.Second))
	require.True(t, l.TryAcquire(50))
	require.Positive(t, l.Stored())
	clock.late.Store(int64(time.Hour)) // a clock that steps back
	require.True(t, l.TryAcquire(40))
	clock.late.Store(0)
	require.InDelta(t, 9, l.Stored(), 1e-9)
}
