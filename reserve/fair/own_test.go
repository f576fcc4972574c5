package fair_test

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/pool"
	"github.com/nextfree/pace/reserve/window"
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

// A panicky Reserver panics at every second request.
type panicky struct {
	by    reserve.Reserver
	asked *atomic.Int64
}

func (p panicky) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	if p.asked.Add(1)%2 == 0 {
		panic("the user's")
	}
	return p.by.ReserveWithin(ctx, n, maxWait)
}

// A panic of a Reserver reaches the caller in whose name it was asked, and not the goroutine of a timer or of another
// caller. The others go on.
func TestAPanicReachesItsCaller(t *testing.T) {
	for name := range doors(evenly(1)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, since func() time.Duration) {
				by := doors(panicky{evenly(1), new(atomic.Int64)})[name]
				var went, panics atomic.Int64
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						defer func() {
							if recover() != nil {
								panics.Add(1)
							}
						}()
						r, err := by.ReserveWithin(ctx, 1, reserve.Forever)
						require.NoError(t, err)
						time.Sleep(time.Duration(1+panics.Load()) * 100 * time.Millisecond) // a timer looks meanwhile
						if r.Wait(ctx) == nil {
							went.Add(1)
						}
					})
				}
				all.Wait()
				require.EqualValues(t, 5, went.Load())
				require.EqualValues(t, 5, panics.Load())
			})
		})
	}
}

// A request that can never go is refused at once, whatever stands before it, and what it would cost is in nobody's
// forecast.
func TestMoreThanItEverHolds(t *testing.T) {
	limits := map[string]func() reserve.Reserver{
		"window": func() reserve.Reserver { return reserve.Must(window.New(100, time.Minute)) },
		"all": func() reserve.Reserver {
			return reserve.All(evenly(1e9), reserve.Must(window.New(100, time.Minute)))
		},
	}
	for name, limit := range limits {
		for door := range doors(evenly(1)) {
			if door == "all" || door == "one more" {
				continue // they stand in front of a queue, which refuses it
			}
			t.Run(name+" "+door, func(t *testing.T) {
				bubble(t, func(t *testing.T, since func() time.Duration) {
					by := doors(limit())[door]
					for _, n := range []int{100, 50} {
						_, err := by.ReserveWithin(ctx, n, reserve.Forever)
						require.NoError(t, err)
					}
					for _, n := range []int{101, 1e8, math.MaxInt} {
						_, err := by.ReserveWithin(ctx, n, reserve.Forever)
						require.Equal(t, &reserve.SizeError{Permits: n, Max: 100}, err)
					}
					_, err := by.ReserveWithin(ctx, 1, time.Minute)
					require.NoError(t, err, "behind the 50")
				})
			})
		}
	}
}

// Sums of permits saturate.
func TestSumsSaturate(t *testing.T) {
	for door := range doors(evenly(1)) {
		bubble(t, func(t *testing.T, since func() time.Duration) {
			by := doors(evenly(1))[door]
			for range 4 {
				_, err := by.ReserveWithin(ctx, math.MaxInt-1, reserve.Forever)
				require.NoError(t, err)
			}
			_, err := by.ReserveWithin(ctx, 1, 100*365*24*time.Hour)
			require.Error(t, err, door)
		})
	}
}

// The same for the policy of a key, which is a function of the user's.
func TestAPanicOfAPolicy(t *testing.T) {
	for name := range doors(evenly(1)) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, since func() time.Duration) {
				policy := reserve.Must(pace.Bursty(1, pace.WithBurst(0)))
				var asked atomic.Int64
				keys := keyed.New(func(string) (*reserve.Policy, error) {
					if asked.Add(1) == 1 {
						panic("the user's")
					}
					return policy, nil
				})
				by := doors(keys.For("key"))[name]
				var went, panics atomic.Int64
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						defer func() {
							if recover() != nil {
								panics.Add(1)
							}
						}()
						if _, err := reserve.Acquire(ctx, by, 1); err == nil {
							went.Add(1)
						}
					})
				}
				all.Wait()
				require.EqualValues(t, 9, went.Load())
				require.EqualValues(t, 1, panics.Load())
			})
		})
	}
}

// Requests with a deadline that wait at a window, in front of it and behind each other, know their times.
func TestDeadlinesAtAWindow(t *testing.T) {
	for name := range doors(evenly(1)) {
		if name == "one more" {
			continue // it knows only the rate of the queue behind it
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, since func() time.Duration) {
				by := doors(reserve.Must(window.New(10, time.Second)))[name]
				var all sync.WaitGroup
				var went, refused atomic.Int64
				for range 100 {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(ctx, 4500*time.Millisecond)
						defer cancel()
						if _, err := reserve.Acquire(ctx, by, 1); err == nil {
							went.Add(1)
						} else {
							refused.Add(1)
							require.ErrorIs(t, err, context.DeadlineExceeded)
						}
					})
				}
				all.Wait()
				require.EqualValues(t, 50, went.Load())
				require.EqualValues(t, 50, refused.Load())
			})
		})
	}
}
