package reserve_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// Several goroutines wait for one reservation, in front of others: all of them go at its time, or all of
// them are told that one has given it up, and those behind move up.
func TestSeveralWaitForOneReservation(t *testing.T) {
	for _, gives := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
			big, err := l.Reserve(ctx, 10)
			require.NoError(t, err)
			one, err := l.Reserve(ctx, 2)
			require.NoError(t, err)
			begin := time.Now()
			var all sync.WaitGroup
			var errs [8]error
			var waited, behind [8]time.Duration
			gaveUp, cancel := context.WithCancelCause(ctx)
			for i := range errs {
				all.Go(func() {
					sleeping := ctx
					if i == 5 {
						sleeping = gaveUp
					}
					errs[i] = one.Wait(sleeping)
					waited[i] = time.Since(begin)
				})
			}
			synctest.Wait()
			for i := range behind {
				all.Go(func() { behind[i], _ = l.Acquire(ctx, 1) })
				synctest.Wait()
			}
			time.Sleep(s)
			big.Settle(5) // five seconds earlier
			time.Sleep(s)
			if gives {
				cancel(errGone)
			}
			all.Wait()
			for i := range errs {
				switch {
				case !gives:
					require.NoError(t, errs[i])
					require.Equal(t, 5*s, waited[i])
				case i == 5:
					require.Equal(t, errGone, errs[i])
				default:
					require.Equal(t, reserve.ErrCancelled, errs[i])
				}
				if gives {
					require.Equal(t, 2*s, waited[i])
					require.Equal(t, time.Duration(5+i)*s, behind[i])
				} else {
					require.Equal(t, time.Duration(7+i)*s, behind[i])
				}
			}
			cancel(nil)
		})
	}
}

// A panickingContext panics when it is asked for the second time whether it is over.
type panickingContext struct {
	context.Context
	asked int
}

func (c *panickingContext) Done() <-chan struct{} {
	if c.asked++; c.asked == 2 {
		panic(errGone)
	}
	return c.Context.Done()
}

// A context that panics while its caller sleeps leaves the limiter unlocked, its place to those behind, and nobody
// asleep for longer.
func TestAContextThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
		require.True(t, l.TryAcquire(5))
		require.PanicsWithValue(t, errGone, func() { _, _ = l.Acquire(&panickingContext{Context: t.Context()}, 3) })
		waited, err := l.Acquire(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, 5*s, waited)
	})
}
