package fair_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/pool"
)

// An own Reserver of the user's: it says no rate, and each answer takes a while.
type own struct {
	by    reserve.Reserver
	takes time.Duration
}

func (o own) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	if o.takes > 0 {
		time.Sleep(o.takes)
	}
	return o.by.ReserveWithin(ctx, n, maxWait)
}

// A Reserver that blocks keeps nobody who has a deadline.
func TestAReserverThatBlocks(t *testing.T) {
	for name := range doors(evenly(1)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, since func() time.Duration) {
				by := doors(own{evenly(1), time.Minute})[name]
				var all sync.WaitGroup
				for i := range 5 {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(ctx, time.Duration(1+i)*time.Second)
						defer cancel()
						_, err := reserve.Acquire(ctx, by, 1)
						require.ErrorIs(t, err, context.DeadlineExceeded)
						require.Equal(t, time.Duration(1+i)*time.Second, since())
					})
				}
				all.Wait()
				_, err := reserve.Acquire(ctx, by, 1)
				require.NoError(t, err)
			})
		})
	}
}

// doors returns what may stand in front of a Reserver.
func doors(by reserve.Reserver) map[string]reserve.Reserver {
	queue := reserve.Must(fair.New(by, people))
	return map[string]reserve.Reserver{
		"fair":     queue.Class("batch"),
		"pool":     reserve.Must(pool.New([]pool.Member[int]{{By: by}})).Reserver(),
		"all":      reserve.All(queue.Class("batch"), evenly(1000)),
		"one more": reserve.Must(fair.New(queue.Class("batch"), people)),
	}
}

// Acquire of a queue or a pool waits for leave to go, also where the Reserver behind can't tell its rate: a forecast is
// none.
func TestAcquireWaitsForLeave(t *testing.T) {
	for name := range doors(evenly(1)) {
		for _, takes := range []time.Duration{0, 50 * time.Millisecond} {
			t.Run(name+" "+takes.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, since func() time.Duration) {
					by := doors(own{reserve.Must(pace.NewBursty(1, pace.WithBurst(0))), takes})[name]
					var went atomic.Int64
					var all sync.WaitGroup
					for range 10 {
						all.Go(func() {
							_, err := reserve.Acquire(ctx, by, 1)
							require.NoError(t, err)
							went.Add(1)
						})
					}
					for range 10 {
						time.Sleep(900 * time.Millisecond)
						require.LessOrEqual(t, went.Load(), 1+int64(since()/time.Second))
					}
					all.Wait()
					require.GreaterOrEqual(t, since(), 9*time.Second)
					require.LessOrEqual(t, since(), 11*time.Second)
				})
			})
		}
	}
}
