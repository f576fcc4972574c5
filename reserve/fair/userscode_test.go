package fair_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
)

var oneClass = []fair.Class{{Name: "c"}}

// A policy that takes long holds up no deadline, whatever a caller asks.
func TestASlowPolicyHoldsUpNoDeadline(t *testing.T) {
	for _, n := range []int{1, 2, 100} {
		synctest.Test(t, func(t *testing.T) {
			keys := keyed.New(func(string) (*reserve.Policy, error) {
				time.Sleep(time.Second)
				return pace.Bursty(10)
			}, keyed.WithTTL(time.Minute))
			q := reserve.Must(fair.New(keys.For("k"), oneClass))
			for range 3 {
				var all sync.WaitGroup
				for i := range 4 {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
						defer cancel()
						begin := time.Now()
						if i%2 == 0 {
							_, _ = q.Acquire(ctx, n)
						} else if r, err := q.ReserveWithin(ctx, n, reserve.Forever); err == nil {
							_, _ = r.Delay(), r.At()
							_ = q.Snapshot()
							_ = r.Wait(ctx)
						}
						require.LessOrEqual(t, time.Since(begin), 50*time.Millisecond)
					})
					time.Sleep(10 * time.Millisecond)
				}
				all.Wait()
				time.Sleep(2 * time.Minute)
			}
		})
	}
}

// The user's code may ask the queue for its snapshot, or panic, wherever the queue calls it: a policy's function, a
// clock, a Reserver, the methods of its reservations.
func TestTheUsersCodeAsksTheQueue(t *testing.T) {
	for name, by := range map[string]func(ask func()) (reserve.Reserver, []fair.Option){
		"policy": func(ask func()) (reserve.Reserver, []fair.Option) {
			return keyed.New(func(string) (*reserve.Policy, error) {
				ask()
				return pace.Bursty(10)
			}, keyed.WithTTL(300*time.Millisecond)).For("k"), nil
		},
		"clock": func(ask func()) (reserve.Reserver, []fair.Option) {
			c := &asking{Clock: clockwork.NewRealClock(), ask: ask}
			return reserve.Must(pace.NewBursty(10, reserve.WithClock(c))), []fair.Option{fair.WithClock(c)}
		},
		"Reserver": func(ask func()) (reserve.Reserver, []fair.Option) {
			return askingReserver{reserve.Must(pace.NewBursty(10)), ask}, nil
		},
		"beside others": func(ask func()) (reserve.Reserver, []fair.Option) {
			return reserve.All(
				reserve.Must(pace.NewBursty(20)), askingReserver{reserve.Must(pace.NewBursty(10)), ask}), nil
		},
	} {
		for _, panics := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var q *fair.Queue
					var calls atomic.Int64
					var begun atomic.Bool
					limit, opts := by(func() {
						if !begun.Load() {
							return
						}
						if panics && calls.Add(1)%17 == 5 {
							panic("no")
						}
						_ = q.Snapshot()
					})
					q = reserve.Must(fair.New(limit, oneClass, opts...))
					begun.Store(true)
					var all sync.WaitGroup
					for i := range 30 {
						all.Go(func() {
							defer func() {
								if value := recover(); value != nil {
									require.True(t, panics)
								}
							}()
							ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
							defer cancel()
							r, err := q.ReserveWithin(ctx, 1+i%3, reserve.Forever)
							if err != nil {
								return
							}
							_, _ = r.Delay(), r.At()
							if i%4 == 0 {
								r.Settle(1)
							}
							if r.Wait(ctx) == nil && i%5 == 0 {
								r.Cancel()
							}
						})
						time.Sleep(50 * time.Millisecond)
					}
					all.Wait()
					begun.Store(false)
					time.Sleep(time.Hour)
					require.Zero(t, q.Snapshot().Classes[0].Waiting)
					_, err := q.Acquire(context.Background(), 1)
					require.NoError(t, err)
				})
			})
		}
	}
}

type asking struct {
	clockwork.Clock
	ask  func()
	asks atomic.Bool
}

// once asks, unless it is asked by what it asks.
func (c *asking) once() {
	if c.asks.CompareAndSwap(false, true) {
		defer c.asks.Store(false)
		c.ask()
	}
}

func (c *asking) Now() time.Time                  { c.once(); return c.Clock.Now() }
func (c *asking) Since(t time.Time) time.Duration { c.once(); return c.Clock.Since(t) }

type askingReserver struct {
	*reserve.Limiter
	ask func()
}

func (a askingReserver) ReserveWithin(ctx context.Context, n int, d time.Duration) (reserve.Reservation, error) {
	a.ask()
	r := new(reserve.Reservation)
	var err error
	if *r, err = a.Limiter.ReserveWithin(ctx, n, d); err != nil {
		return reserve.Reservation{}, err
	}
	return reserve.NewReservation(askingPromise{r, a.ask}), nil
}

func (a askingReserver) Rate() float64 { a.ask(); return a.Limiter.Rate() }

type askingPromise struct {
	*reserve.Reservation
	ask func()
}

func (p askingPromise) At() time.Time        { p.ask(); return p.Reservation.At() }
func (p askingPromise) Delay() time.Duration { p.ask(); return p.Reservation.Delay() }
func (p askingPromise) Cancel()              { p.Reservation.Cancel(); p.ask() }
func (p askingPromise) Settle(n int)         { p.Reservation.Settle(n); p.ask() }

// A caller comes back when it is granted, however many others come after it.
func TestNobodyServesOthers(t *testing.T) {
	for name, takes := range map[string]time.Duration{"slow": 10 * time.Millisecond, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reserve.Must(fair.New(farAway{reserve.Must(pace.NewBursty(1e6)), takes}, oneClass))
				begin := time.Now()
				first := make(chan time.Duration, 1)
				go func() { _, _ = q.Acquire(context.Background(), 1); first <- time.Since(begin) }()
				var all sync.WaitGroup
				for range 500 {
					time.Sleep(9 * time.Millisecond)
					all.Go(func() { _, _ = q.Acquire(context.Background(), 1) })
				}
				require.LessOrEqual(t, <-first, 2*takes)
				all.Wait()
			})
		})
	}
}

type farAway struct {
	*reserve.Limiter
	takes time.Duration
}

func (f farAway) ReserveWithin(ctx context.Context, n int, d time.Duration) (reserve.Reservation, error) {
	time.Sleep(f.takes)
	return f.Limiter.ReserveWithin(ctx, n, d)
}

// A caller whose context has ended comes back, however long it takes to give its permits back.
func TestGivingUpWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, takes := reserve.Must(pace.NewTokenBucket(1, 1)), time.Duration(0)
		q := reserve.Must(fair.New(askingReserver{l, func() { time.Sleep(takes) }}, oneClass))
		r, err := q.ReserveWithin(t.Context(), 1, 0)
		require.NoError(t, err)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		begin := time.Now()
		takes = time.Minute
		require.ErrorIs(t, r.Wait(ended), context.Canceled)
		require.Zero(t, time.Since(begin))
		time.Sleep(2 * takes)
		require.EqualValues(t, 1, l.Snapshot().GivenBack)
	})
}

// Settle while a limit is asked changes the request afterwards: what is asked stays as it is.
func TestSettleWhileALimitIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := reserve.Must(pace.NewTokenBucket(1, 10))
		require.True(t, l.TryAcquire(10))
		q := reserve.Must(fair.New(farAway{l, 20 * time.Millisecond}, oneClass))
		held, err := q.ReserveWithin(context.Background(), 1, reserve.Forever)
		require.NoError(t, err)
		r, err := q.ReserveWithin(context.Background(), 8, reserve.Forever)
		require.NoError(t, err)
		require.NoError(t, held.Wait(context.Background()))
		time.Sleep(10 * time.Millisecond)
		r.Settle(2)
		begin := time.Now()
		require.NoError(t, r.Wait(context.Background()))
		require.Less(t, time.Since(begin), 3*time.Second)
		s := l.Snapshot()
		require.EqualValues(t, 10+1+2, s.Granted-s.GivenBack)
	})
}

// A caller that gives up although it has settled its request gets everything back.
func TestSettledAndGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
		require.True(t, l.TryAcquire(10))
		q := reserve.Must(fair.New(l, oneClass))
		for _, first := range []bool{true, false} {
			r, err := q.ReserveWithin(context.Background(), 5, reserve.Forever)
			require.NoError(t, err)
			r.Settle(2)
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Second, func() { cancel(errors.New("enough")) })
			require.Error(t, r.Wait(ctx), first)
			s := l.Snapshot()
			require.EqualValues(t, 10, s.Granted-s.GivenBack)
			require.Zero(t, q.Snapshot().Classes[0].Waiting)
		}
	})
}
