package wake

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// closed is a moved channel that says so.
func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
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
					Sleep(t.Context(), d, nil)
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
				Sleep(t.Context(), d, nil)
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
		"zero":      {func(t *testing.T) { Sleep(t.Context(), 0, nil) }, 0},
		"negative":  {func(t *testing.T) { Sleep(t.Context(), math.MinInt64, nil) }, 0},
		"cancelled": {func(t *testing.T) { Sleep(cancelled, time.Hour, nil) }, 0},
		"moved":     {func(t *testing.T) { Sleep(t.Context(), time.Hour, closed()) }, 0},
		"cancelled later": {func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), at)
			defer cancel()
			Sleep(ctx, math.MaxInt64, nil)
		}, at},
		"moved later": {func(t *testing.T) {
			moved := make(chan struct{})
			time.AfterFunc(at, func() { close(moved) })
			Sleep(t.Context(), math.MaxInt64, moved)
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
		Sleep(t.Context(), time.Microsecond, nil)
		Sleep(t.Context(), 2*time.Millisecond, nil)
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			Sleep(t.Context(), 2*time.Millisecond, nil)
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
			Sleep(t.Context(), d, nil)
			require.GreaterOrEqual(t, time.Since(start), d)
		}
	}
}

func TestReturnsWhenCancelledOrMoved(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, d := range []time.Duration{time.Millisecond, math.MaxInt64} { // these return, or the test hangs
		Sleep(cancelled, d, nil)
		Sleep(t.Context(), d, closed())
	}
}

// TestMain looks for goroutines left behind, TestCancelledWaitsLeaveNoDescriptor for descriptors.
func TestCancelledWaits(t *testing.T) { cancelWaits(10_000) }

// cancelWaits starts n waits of many lengths, ends them, half by their context and half by moved, and sees them off.
func cancelWaits(n int) {
	ctx, cancel := context.WithCancel(context.Background())
	moved := make(chan struct{})
	var started, done sync.WaitGroup
	started.Add(n)
	for i := range n {
		done.Go(func() {
			started.Done()
			d := time.Hour
			if i%4 == 3 {
				d = time.Duration(i) * time.Microsecond // up to 10 ms: some are over, some in their last stretch
			}
			if i%2 == 0 {
				Sleep(ctx, d, nil)
			} else {
				Sleep(context.Background(), d, moved)
			}
		})
	}
	started.Wait()
	cancel()
	close(moved)
	done.Wait()
}

func TestStormDueInTheSameMillisecond(t *testing.T) {
	const waiters = 2_000
	due := time.Now().Add(20 * time.Millisecond)
	early := make(chan time.Duration, waiters)
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			Sleep(context.Background(), time.Until(due), nil)
			if left := time.Until(due); left > 0 {
				early <- left
			}
		})
	}
	all.Wait()
	require.Empty(t, early, "woken before their time")
}

func ExampleSleep() {
	moved := make(chan struct{})
	close(moved) // whoever closes it has changed the time that is waited for

	Sleep(context.Background(), time.Hour, moved)
	fmt.Println("awake, to look at the time again")
	// Output: awake, to look at the time again
}
