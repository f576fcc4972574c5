package wake

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace/internal/watchdog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sleep sleeps once, on a Sleeper that no goroutine wakes.
func sleep(ctx context.Context, d time.Duration) { new(Sleeper).fresh().sleep(ctx, d) }

func (s *Sleeper) fresh() *Sleeper {
	s.Reset()
	return s
}

// sleep sleeps as a limiter's caller does: it looks at its time again when it wakes, unless it was woken.
func (s *Sleeper) sleep(ctx context.Context, d time.Duration) {
	begin := time.Now()
	for ctx.Err() == nil {
		left := d - time.Since(begin)
		if left <= 0 {
			return
		}
		if s.Short(left) {
			Spin(left)
			return
		}
		s.Set(left, 0)
		s.Sleep(ctx)
		if time.Since(begin) < d {
			return // woken, or the context is done
		}
	}
}

// woken is a sleeper that is woken before it sleeps.
func woken() *Sleeper {
	s := new(Sleeper).fresh()
	s.Wake()
	return s
}

func TestBubbleTimeComesOutExact(t *testing.T) {
	for _, d := range []time.Duration{
		1, time.Microsecond, 10 * time.Microsecond, 142857142, 1500 * time.Microsecond, 1500*time.Microsecond + 1,
		2 * time.Millisecond, time.Second, 1000 * time.Hour,
	} {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				for i := range 50 {
					sleep(t.Context(), d)
					require.Equal(t, time.Duration(i+1)*d, time.Since(start))
				}
			})
		})
	}
}

func TestBubbleWaitersDueTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			d := time.Duration(i%2+1) * time.Millisecond
			all.Go(func() {
				sleep(t.Context(), d)
				if got := time.Since(start); got != d {
					t.Errorf("slept %v, want %v", got, d)
				}
			})
		}
		all.Wait()
	})
}

// What ends a sleep before its time, at which moment of fake time.
func TestBubbleEndsBeforeItsTime(t *testing.T) {
	const at = 3 * time.Second
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tt := range map[string]struct {
		sleep func(t *testing.T)
		want  time.Duration
	}{
		"zero":      {func(t *testing.T) { sleep(t.Context(), 0) }, 0},
		"negative":  {func(t *testing.T) { sleep(t.Context(), math.MinInt64) }, 0},
		"cancelled": {func(t *testing.T) { sleep(cancelled, time.Hour) }, 0},
		"woken":     {func(t *testing.T) { woken().sleep(t.Context(), time.Hour) }, 0},
		"cancelled later": {func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), at)
			defer cancel()
			sleep(ctx, math.MaxInt64)
		}, at},
		"woken later": {func(t *testing.T) {
			s := new(Sleeper).fresh()
			time.AfterFunc(at, s.Wake)
			s.sleep(t.Context(), math.MaxInt64)
		}, at},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				tt.sleep(t)
				require.Equal(t, tt.want, time.Since(start))
			})
		})
	}
}

// A timer that went from a bubble to the outside, or the other way, would crash the program.
func TestNothingIsSharedWithBubbles(t *testing.T) {
	for range 3 {
		sleep(t.Context(), time.Microsecond)
		sleep(t.Context(), 2*time.Millisecond)
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			sleep(t.Context(), 2*time.Millisecond)
			require.Equal(t, 2*time.Millisecond, time.Since(start))
		})
	}
}

func TestNeverEarly(t *testing.T) {
	for _, d := range []time.Duration{
		1, time.Microsecond, 9 * time.Microsecond, 11 * time.Microsecond, 100 * time.Microsecond, time.Millisecond,
		1500 * time.Microsecond, 1501 * time.Microsecond, 3 * time.Millisecond,
	} {
		for range 20 {
			start := time.Now()
			sleep(t.Context(), d)
			require.GreaterOrEqual(t, time.Since(start), d)
		}
	}
}

func TestReturnsWhenCancelledOrWoken(t *testing.T) {
	watchdog.Start(t)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, d := range []time.Duration{time.Millisecond, math.MaxInt64} { // these return, or the test hangs
		sleep(cancelled, d)
		woken().sleep(t.Context(), d)
	}
}

// TestMain looks for goroutines left behind, TestCancelledWaitsLeaveNoDescriptor for descriptors.
func TestCancelledWaits(t *testing.T) {
	watchdog.Start(t)
	cancelWaits(10_000)
}

// cancelWaits starts n waits of many lengths, ends them, half by their context and half by Wake,
// and sees them off.
func cancelWaits(n int) {
	ctx, cancel := context.WithCancel(context.Background())
	sleepers := make([]Sleeper, n)
	var started, done sync.WaitGroup
	started.Add(n)
	for i := range n {
		sleepers[i].Reset()
		done.Go(func() {
			started.Done()
			d := time.Hour
			if i%4 == 3 {
				d = time.Duration(i) * time.Microsecond // up to 10 ms: some are over, some in their last stretch
			}
			if i%2 == 0 {
				sleepers[i].sleep(ctx, d)
			} else {
				sleepers[i].sleep(context.Background(), d)
			}
		})
	}
	started.Wait()
	cancel()
	for i := range sleepers {
		sleepers[i].Wake()
	}
	done.Wait()
}

func TestStormDueInTheSameMillisecond(t *testing.T) {
	watchdog.Start(t)
	const waiters = 2_000
	due := time.Now().Add(20 * time.Millisecond)
	early := make(chan time.Duration, waiters)
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			sleep(context.Background(), time.Until(due))
			if left := time.Until(due); left > 0 {
				early <- left
			}
		})
	}
	all.Wait()
	require.Empty(t, early, "woken before their time")
}

func ExampleSleeper() {
	var s Sleeper
	s.Reset()
	s.Wake() // by another goroutine, which has changed the time that is waited for

	s.Set(time.Hour, 0)
	s.Sleep(context.Background())
	fmt.Println("awake, to look at the time again")
	// Output: awake, to look at the time again
}

// Of many sleeps of 3 ms at least one is over before a timer of 6 ms, however busy the machine is.
func TestNotMuchLater(t *testing.T) {
	for range 100 {
		timer := time.AfterFunc(6*time.Millisecond, func() {})
		sleep(t.Context(), 3*time.Millisecond)
		if timer.Stop() {
			return
		}
	}
	t.Fatal("all were late")
}

// However a Set or a Wake by another goroutine meets the sleeper (before it sleeps, while it does, as it wakes),
// the sleep ends by then.
func TestSetByAnotherGoroutine(t *testing.T) {
	watchdog.Start(t)
	for i := range 2000 {
		s := new(Sleeper).fresh()
		over := make(chan struct{})
		s.Set(time.Hour, 0)
		go func() {
			defer close(over)
			s.Sleep(context.Background())
		}()
		for range i % 100 * 10 { // some moments
			_ = time.Now()
		}
		if i%2 == 0 {
			s.Set(time.Duration(i%40)*time.Microsecond, 0)
		} else {
			s.Wake()
		}
		<-over
	}
}

func TestBubbleSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slack = 10 * time.Millisecond
		begin := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		woke := map[time.Duration]int{}
		for i := range 50 {
			all.Go(func() {
				d := time.Duration(i) * time.Millisecond
				s := new(Sleeper).fresh()
				s.Set(d, slack)
				s.Sleep(context.Background())
				late := time.Since(begin) - d
				if late < 0 || late >= slack {
					t.Errorf("%v late", late)
				}
				mu.Lock()
				woke[time.Since(begin)]++
				mu.Unlock()
			})
		}
		all.Wait()
		require.Equal(t, map[time.Duration]int{0: 1, slack: 10, 2 * slack: 10, 3 * slack: 10, 4 * slack: 10, 5 * slack: 9}, woke)
	})
}

// A limiter's sleepers may be used in a bubble and outside.
func TestInAndOutOfBubbles(t *testing.T) {
	s := new(Sleeper)
	for range 3 {
		s.fresh().sleep(t.Context(), time.Millisecond)
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			s.fresh().sleep(t.Context(), time.Hour)
			require.Equal(t, time.Hour, time.Since(begin))
		})
	}
}

// However a program is stopped between the readings of two clocks, all bounds agree about suspensions. Before, a program
// that was stopped for a millisecond as it began took this for a suspension, and its first request went that much early.
func TestBoundsOfSuspensionsAgree(t *testing.T) {
	var all sync.WaitGroup
	var mu sync.Mutex
	low, high := Suspended()
	for range 8 {
		all.Go(func() {
			for range 20_000 {
				least, most := Suspended()
				mu.Lock()
				low, high = max(low, least), min(high, most)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, low, high)
}
