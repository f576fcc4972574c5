package fair_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

var ctx = context.Background()

func evenly(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))
}

var people = []fair.Class{{Name: "people", Priority: 1}, {Name: "batch"}}

// bubble runs a test in a bubble, whose time begins when f is called.
func bubble(t *testing.T, f func(t *testing.T, since func() time.Duration)) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f(t, func() time.Duration { return time.Since(begin) })
	})
}

// The experiment of the documentation: 100 calls of people among 1,000 of a batch.
func TestPeopleAmongABatch(t *testing.T) {
	limits := map[string]func() reserve.Reserver{
		"bursty":       func() reserve.Reserver { return evenly(10) },
		"token bucket": func() reserve.Reserver { return reserve.Must(pace.NewTokenBucket(10, 5)) },
		"window":       func() reserve.Reserver { return reserve.Must(window.New(10, time.Second)) },
		"all":          func() reserve.Reserver { return reserve.All(evenly(10), evenly(20)) },
		"a key's": func() reserve.Reserver {
			policy := reserve.Must(pace.Bursty(10, pace.WithBurst(0)))
			return keyed.New(func(string) (*reserve.Policy, error) { return policy, nil }).For("key")
		},
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			play := func(classes []fair.Class) (waits []time.Duration, end time.Duration) {
				bubble(t, func(t *testing.T, since func() time.Duration) {
					q := reserve.Must(fair.New(limit(), classes))
					var all sync.WaitGroup
					var mu sync.Mutex
					for i := range 1000 {
						all.Go(func() {
							_, err := q.Acquire(fair.With(ctx, "batch", ""), 1+i%3)
							require.NoError(t, err)
						})
						time.Sleep(time.Nanosecond) // they come in this order
					}
					for i := range 100 {
						time.Sleep(1990 * time.Millisecond)
						all.Go(func() {
							waited, err := q.Acquire(fair.With(ctx, "people", ""), 1+i%3)
							require.NoError(t, err)
							mu.Lock()
							waits = append(waits, waited)
							mu.Unlock()
						})
					}
					all.Wait()
					end = since()
				})
				slices.Sort(waits)
				return
			}
			waits, end := play(people)
			_, fifoEnd := play([]fair.Class{{Name: "people"}, {Name: "batch", Weight: 1e-9}})
			slot := 300 * time.Millisecond // of three permits
			packed := 400 * time.Millisecond
			if name == "window" { // what it holds depends on the order
				slot, packed = time.Second, 8*time.Second
			}
			require.LessOrEqual(t, waits[98], slot+time.Millisecond)
			require.InDelta(t, fifoEnd, end, float64(packed))
			t.Log(waits[98], waits[99], end, fifoEnd)
		})
	}
}

// A call of a higher priority takes over what was reserved, and the one before gets it back.
func TestHandedOn(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		limit := evenly(1)
		q := reserve.Must(fair.New(limit, people))
		batch, urgent := q.Class("batch"), q.Class("people")
		a, err := batch.ReserveWithin(ctx, 2, 0)
		require.NoError(t, err, "no request waits")
		require.Zero(t, a.Delay())
		b, err := batch.ReserveWithin(ctx, 3, reserve.Forever)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, b.Delay())
		_, err = urgent.ReserveWithin(ctx, 1, time.Second)
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.Equal(t, reserve.WaitError{Wait: 2 * time.Second, MaxWait: time.Second}, *wait)
		require.Equal(t, 2*time.Second, b.Delay(), "a refused request leaves no trace")
		c, err := urgent.ReserveWithin(ctx, 1, reserve.Forever)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, c.Delay())
		require.Equal(t, 3*time.Second, b.Delay(), "it became later")
		c.Cancel()
		require.Equal(t, 2*time.Second, b.Delay())
		require.ErrorIs(t, c.Wait(ctx), reserve.ErrCancelled)
		require.NoError(t, b.Wait(ctx))
		require.Equal(t, 2*time.Second, since())
		b.Settle(1)
		require.Equal(t, 3*time.Second, time.Until(limit.NextFree())+since())
		s := q.Snapshot()
		require.Equal(t, []fair.ClassSnapshot{
			{Class: "people", Refused: 1},
			{Class: "batch", Granted: 5, GivenBack: 2, LongestWait: 2 * time.Second},
		}, s.Classes)
	})
}

// At once, if the permits are free and no request of the same priority or a higher one waits.
func TestAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		q := reserve.Must(fair.New(reserve.Must(pace.NewTokenBucket(1, 10)), people))
		big, err := q.Class("batch").ReserveWithin(ctx, 12, reserve.Forever)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, big.Delay())
		_, err = q.Class("batch").ReserveWithin(ctx, 1, 0)
		require.Error(t, err, "one of its priority waits")
		_, err = q.Class("people").ReserveWithin(ctx, 4, 0)
		require.NoError(t, err, "permits are free, and only lower ones wait")
		require.Equal(t, 6*time.Second, big.Delay())
	})
}

// The deadline: refused at the door by the forecast, and later as soon as it is certain.
func TestDeadlines(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		limit := evenly(1)
		q := reserve.Must(fair.New(limit, people))
		require.True(t, limit.TryAcquire(1))
		var all sync.WaitGroup
		wait := func(class string, d time.Duration) (at chan time.Duration, result chan error) {
			at, result = make(chan time.Duration, 1), make(chan error, 1)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, d)
				defer cancel()
				_, err := q.Acquire(fair.With(ctx, class, ""), 1)
				at <- since()
				result <- err
			})
			synctest.Wait()
			return
		}
		for range 3 {
			wait("batch", time.Hour)
		}
		_, refused := wait("batch", 3900*time.Millisecond)
		var late *reserve.WaitError
		require.ErrorAs(t, <-refused, &late)
		require.Equal(t, 4*time.Second, late.Wait)
		require.ErrorIs(t, late, context.DeadlineExceeded)
		at, result := wait("batch", 4100*time.Millisecond)
		time.Sleep(1500 * time.Millisecond) // one was granted
		for range 3 {
			wait("people", time.Hour)
		}
		require.Equal(t, 1500*time.Millisecond, <-at, "at once, not at its deadline")
		require.ErrorAs(t, <-result, &late)
		require.ErrorIs(t, late, context.DeadlineExceeded)
		at, result = wait("people", 5*time.Second)
		limit.PauseUntil(time.Now().Add(time.Minute))
		require.Equal(t, 1500*time.Millisecond, <-at, "a pause makes it impossible")
		require.ErrorAs(t, <-result, &late)
		all.Wait()
	})
}

// Callers that give up, panic or leave take nothing with them.
func TestNoTrace(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		q := reserve.Must(fair.New(evenly(1), people, fair.WithTenants(nil)))
		require.NoError(t, errOf(q.Acquire(ctx, 1)))
		gone := errors.New("gone")
		cancelled, cancel := context.WithCancelCause(ctx)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				_, err := q.Acquire(fair.With(cancelled, "batch", fmt.Sprint(i)), 10)
				require.ErrorIs(t, err, gone)
			})
			all.Go(func() {
				defer func() { require.NotNil(t, recover()) }()
				r, err := q.ReserveWithin(fair.With(ctx, "people", fmt.Sprint(i)), 10, reserve.Forever)
				require.NoError(t, err)
				_ = r.Wait(panics{ctx})
			})
			r, err := q.Class("people").ReserveWithin(ctx, 5, reserve.Forever)
			require.NoError(t, err)
			defer r.Cancel()
			r.Settle(0)
		}
		synctest.Wait()
		cancel(gone)
		all.Wait()
		require.Zero(t, since())
		waited, err := q.Acquire(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, time.Second, waited)
		for _, c := range q.Snapshot().Classes {
			require.Zero(t, c.Waiting)
			require.Zero(t, c.Tenants)
		}
	})
}

type panics struct{ context.Context }

func (panics) Done() <-chan struct{} { panic("the caller's") }

func errOf[T any](_ T, err error) error { return err }

// A class with a limit of its own: it stops while the others go on, and alone it gets all of it.
func TestClassLimit(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		q := reserve.Must(fair.New(reserve.Must(window.New(100, time.Hour)), []fair.Class{
			{Name: "people", Priority: 1},
			{Name: "batch", Limit: reserve.Must(window.New(70, time.Hour))},
			{Name: "rest", Priority: -1},
		}))
		var all sync.WaitGroup
		var went atomic.Int64
		for range 200 {
			all.Go(func() {
				_, err := q.Acquire(fair.With(ctx, "batch", ""), 1)
				require.NoError(t, err)
				went.Add(1)
			})
			synctest.Wait()
		}
		require.EqualValues(t, 70, went.Load())
		require.NoError(t, errOf(q.Class("rest").ReserveWithin(ctx, 1, 0)), "the batch waits for a limit of its own")
		for range 29 {
			require.NoError(t, errOf(q.Class("people").ReserveWithin(ctx, 1, 0)), "one of the 30 is left")
		}
		require.Error(t, errOf(q.Class("people").ReserveWithin(ctx, 1, 0)))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 140, went.Load())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 200, went.Load())
		all.Wait()
		require.Equal(t, 2*time.Hour, since())
		_, err := q.Class("batch").ReserveWithin(ctx, 71, time.Hour)
		require.Equal(t, &reserve.SizeError{Permits: 71, Max: 70}, err)
	})
}

// A class of a higher priority whose own limit has no room holds up nobody, and goes before the others when it has.
func TestClassLimitFirst(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		q := reserve.Must(fair.New(evenly(1), []fair.Class{{Name: "first", Priority: 1, Limit: evenly(0.25)}, {Name: "others"}}))
		var all sync.WaitGroup
		var went []string
		var mu sync.Mutex
		for i := range 9 {
			all.Go(func() {
				class := []string{"first", "others", "others"}[i%3]
				_, err := q.Acquire(fair.With(ctx, class, ""), 1)
				require.NoError(t, err)
				mu.Lock()
				went = append(went, fmt.Sprint(class, " ", since()))
				mu.Unlock()
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, []string{
			"first 0s", "others 1s", "others 2s", "others 3s", "first 4s", "others 5s", "others 6s", "others 7s", "first 8s",
		}, went)
	})
}

// The recipe of the guide: a batch behind people, on the limiters that the README names. Alone it gets its own limit,
// and never less.
func TestBatchBehindPeople(t *testing.T) {
	for name, limit := range map[string]func() *reserve.Limiter{
		"evenly": func() *reserve.Limiter { return evenly(50) },
		"bursty": func() *reserve.Limiter { return reserve.Must(pace.NewBursty(50)) },
		"bucket": func() *reserve.Limiter { return reserve.Must(pace.NewTokenBucket(50, 10)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, since func() time.Duration) {
				q := reserve.Must(fair.New(limit(), []fair.Class{
					{Name: "people", Priority: 1}, {Name: "batch", Limit: evenly(35), MaxAge: time.Minute},
				}))
				for range 351 {
					_, err := q.Acquire(fair.With(ctx, "batch", ""), 1)
					require.NoError(t, err)
				}
				require.InDelta(t, 10*time.Second, since(), float64(100*time.Millisecond))
			})
		})
	}
}

// Having waited for MaxAge, a request goes as if its priority were one higher.
func TestMaxAge(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		q := reserve.Must(fair.New(evenly(1), []fair.Class{{Name: "people", Priority: 1}, {Name: "batch", MaxAge: 10 * time.Second}}))
		require.NoError(t, errOf(q.Acquire(ctx, 1)))
		var all sync.WaitGroup
		var went []time.Duration
		var mu sync.Mutex
		for range 3 {
			all.Go(func() {
				waited, err := q.Acquire(fair.With(ctx, "batch", ""), 1)
				require.NoError(t, err)
				mu.Lock()
				went = append(went, waited)
				mu.Unlock()
			})
		}
		for range 30 {
			all.Go(func() { require.NoError(t, errOf(q.Acquire(fair.With(ctx, "people", ""), 1))) })
		}
		all.Wait()
		for i, waited := range went {
			require.InDelta(t, 10+2*float64(i), waited.Seconds(), 1.01, "from 10 s on it shares with the others")
		}
	})
}

// More may not wait.
func TestMaxQueue(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		q := reserve.Must(fair.New(evenly(1), []fair.Class{{Name: "", MaxQueue: 2}}))
		require.NoError(t, errOf(q.ReserveWithin(ctx, 1, 0)))
		require.NoError(t, errOf(q.ReserveWithin(ctx, 1, time.Minute)))
		require.NoError(t, errOf(q.ReserveWithin(ctx, 1, time.Minute)))
		err := errOf(q.ReserveWithin(ctx, 1, time.Minute))
		require.Equal(t, &fair.FullError{MaxQueue: 2}, err)
		require.EqualError(t, err, `fair: 2 requests of class "" wait already, as many as may`)
		require.Equal(t, uint64(1), q.Snapshot().Classes[0].Refused)
		time.Sleep(time.Second)
		require.NoError(t, errOf(q.ReserveWithin(ctx, 1, time.Minute)), "one was granted")
	})
}

// Doorman's tables: capacity 120, by what each wants, and by weights.
func TestDoorman(t *testing.T) {
	tables := []struct {
		wants, weights, shares []float64
	}{
		{[]float64{1000, 60, 10}, []float64{1, 1, 1}, []float64{55, 55, 10}},
		{[]float64{1000, 50, 10}, []float64{1, 1, 1}, []float64{60, 50, 10}},
		{[]float64{1000, 500, 200}, []float64{6, 4, 2}, []float64{60, 40, 20}},
	}
	for _, table := range tables {
		t.Run(fmt.Sprint(table.wants), func(t *testing.T) {
			bubble(t, func(t *testing.T, since func() time.Duration) {
				weight := func(tenant string) float64 { return table.weights[tenant[0]-'0'] }
				q := reserve.Must(fair.New(evenly(120), []fair.Class{{Name: "all"}}, fair.WithTenants(weight)))
				ctx, cancel := context.WithCancel(ctx)
				got := make([]int, len(table.wants))
				var mu sync.Mutex
				var all sync.WaitGroup
				for i, wants := range table.wants {
					all.Go(func() {
						for k := 0; ctx.Err() == nil; k++ {
							all.Go(func() {
								if _, err := q.Acquire(fair.With(ctx, "", fmt.Sprint(i)), 1); err == nil {
									mu.Lock()
									got[i]++
									mu.Unlock()
								}
							})
							time.Sleep(time.Duration(math.Round(float64(k+1)/wants*1e9)) - since())
						}
					})
				}
				time.Sleep(20 * time.Second)
				cancel()
				all.Wait()
				for i, share := range table.shares {
					require.InEpsilon(t, share, float64(got[i])/20, 0.01, "%v", got)
				}
			})
		})
	}
}

// Settle corrects a tenant's account: one that estimates 1000 and uses 400 gets as much as one that estimates what it
// uses.
func TestSharesAreOfWhatIsUsed(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		q := reserve.Must(fair.New(reserve.Must(pace.NewTokenBucket(1000, 1000)), []fair.Class{{}}, fair.WithTenants(nil)))
		ctx, cancel := context.WithCancel(ctx)
		used := map[string]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for tenant, n := range map[string][2]int{"guesses": {1000, 400}, "knows": {400, 400}, "lies": {100, 400}} {
			for range 4 {
				all.Go(func() {
					for ctx.Err() == nil {
						r, err := q.Tenant("", tenant).ReserveWithin(ctx, n[0], reserve.Forever)
						if err == nil {
							err = r.Wait(ctx)
						}
						if err != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
						r.Settle(n[1])
						mu.Lock()
						used[tenant] += n[1]
						mu.Unlock()
					}
				})
			}
		}
		time.Sleep(400 * time.Second)
		cancel()
		all.Wait()
		t.Log(used)
		for _, n := range used {
			require.InEpsilon(t, 400_000/3, n, 0.02, "%v", used)
		}
	})
}

func TestInput(t *testing.T) {
	limit := evenly(1)
	bad := map[string]func() (*fair.Queue, error){
		`fair: the limit is <nil>; want a Reserver`:         func() (*fair.Queue, error) { return fair.New(nil, people) },
		`fair: the number of classes is 0; want at least 1`: func() (*fair.Queue, error) { return fair.New(limit, nil) },
		`fair: an option is <nil>; want an option`:          func() (*fair.Queue, error) { return fair.New(limit, people, nil) },
		`fair: WithClock is <nil>; want a clock`:            func() (*fair.Queue, error) { return fair.New(limit, people, fair.WithClock(nil)) },
		`fair: the name of a class is "a"; want one that no other class has`: func() (*fair.Queue, error) {
			return fair.New(limit, []fair.Class{{Name: "a"}, {Name: "a"}})
		},
		`fair: Weight of class "a" is NaN; want a positive number, or 0 for the default of 1`: func() (*fair.Queue, error) {
			return fair.New(limit, []fair.Class{{Name: "a", Weight: math.NaN()}})
		},
		`fair: MaxAge of class "a" is -1ns; want 0 or more`: func() (*fair.Queue, error) {
			return fair.New(limit, []fair.Class{{Name: "a", MaxAge: -1}})
		},
		`fair: Limit of class "a" is <nil>; want a Reserver, or nil without a type`: func() (*fair.Queue, error) {
			return fair.New(limit, []fair.Class{{Name: "a", Limit: (*reserve.Limiter)(nil)}})
		},
		`fair: MaxQueue of class "a" is -1; want 0 or more requests`: func() (*fair.Queue, error) {
			return fair.New(limit, []fair.Class{{Name: "a", MaxQueue: -1}})
		},
	}
	for want, f := range bad {
		_, err := f()
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(*reserve.ValueError))
	}
	q := reserve.Must(fair.New(limit, people, fair.WithTenants(func(string) float64 { return 0 })))
	require.EqualError(t, errOf(q.ReserveWithin(ctx, 0, 0)), "fair: permits is 0; want at least 1")
	require.EqualError(t, errOf(q.Class("x").ReserveWithin(ctx, 1, 0)), `fair: the class is "x"; want one of "people", "batch"`)
	require.EqualError(t, errOf(q.Tenant("batch", "t").ReserveWithin(ctx, 1, 0)), `fair: the weight of tenant "t" is 0; want a positive number`)
	done, cancel := context.WithCancel(ctx)
	cancel()
	q = reserve.Must(fair.New(limit, people))
	require.ErrorIs(t, errOf(q.Acquire(done, 1)), context.Canceled)
}

// A Settle at less of a charge that was forgiven is no credit. Calls of one tenant are out as a queue forms, with
// estimates of 1000, and use 400. From then on both tenants get the same.
func TestNoCreditForWhatWasForgiven(t *testing.T) {
	for _, byClass := range []bool{false, true} {
		bubble(t, func(t *testing.T, since func() time.Duration) {
			limit := reserve.Must(pace.NewTokenBucket(13_000, 100_000))
			q := reserve.Must(fair.New(limit, []fair.Class{{Name: "a"}, {Name: "b"}}, fair.WithTenants(nil)))
			door := func(name string) reserve.Reserver {
				if byClass {
					return q.Class(name)
				}
				return q.Tenant("a", name)
			}
			var out []*reserve.Reservation
			for range 100 {
				r, err := door("a").ReserveWithin(ctx, 1000, 0)
				require.NoError(t, err)
				out = append(out, &r)
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			got := map[string]int{}
			var mu sync.Mutex
			var all sync.WaitGroup
			for _, name := range []string{"a", "b"} {
				for range 20 {
					all.Go(func() {
						for {
							if _, err := reserve.Acquire(ctx, door(name), 1000); err != nil {
								return
							}
							mu.Lock()
							got[name] += 1000
							mu.Unlock()
						}
					})
				}
			}
			for _, r := range out {
				time.Sleep(200 * time.Millisecond)
				r.Settle(400)
				mu.Lock()
				require.InDelta(t, got["a"], got["b"], 2000)
				mu.Unlock()
			}
			cancel()
			all.Wait()
			require.Greater(t, got["a"], 100_000)
		})
	}
}
