package reserve_test

import (
	"context"
	"sync"
	"sync/atomic"
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
			asked := &askedContext{Context: ctx}
			gaveUp, cancel := context.WithCancelCause(ctx)
			for i := range errs {
				all.Go(func() {
					sleeping := context.Context(asked)
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

// An askedContext is asked once or twice each time its caller goes to sleep.
type askedContext struct {
	context.Context
	times atomic.Int64
}

func (c *askedContext) Done() <-chan struct{} {
	if c.times.Add(1) > 1000 {
		panic("they wake each other without end")
	}
	return c.Context.Done()
}
