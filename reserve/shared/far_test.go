package shared_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
)

// far is a store a round trip of 100 ms away.
type far struct {
	shared.Store
	calls atomic.Int64
	late  atomic.Int64 // nanoseconds more for the answers to calls that arrive now
	sick  atomic.Bool  // it panics
}

func (f *far) Update(ctx context.Context, key string, change func(time.Time, []byte) ([]byte, time.Duration, error)) error {
	f.calls.Add(1)
	if f.sick.Load() {
		panic("sick")
	}
	time.Sleep(50 * time.Millisecond)
	err := f.Store.Update(context.WithoutCancel(ctx), key, change)
	select {
	case <-time.After(50*time.Millisecond + time.Duration(f.late.Load())):
		return err
	case <-ctx.Done(): // the answer is lost
		return ctx.Err()
	}
}

// One hot key, far away, from four processes: with permits bought ahead a few callers get all of the limit, and no
// interval has more permits than the limit allows, if each may be used two calls after its time.
func TestAhead(t *testing.T) {
	const rate, seconds = 1000, 10
	for _, callers := range []int{1, 4, 64} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &far{Store: shared.Memory()}
				ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
				defer cancel()
				begin, used := time.Now(), make([]int, 100*seconds+20)
				var mu sync.Mutex
				var all sync.WaitGroup
				for range 4 {
					l, err := shared.NewIn(store, "hot", reserve.Must(pace.Bursty(rate, pace.WithCapacity(10))), shared.WithAhead(64))
					require.NoError(t, err)
					for range callers {
						all.Go(func() {
							for {
								if _, err := l.Acquire(ctx, 1); err != nil {
									return
								}
								mu.Lock()
								used[time.Since(begin)/(10*time.Millisecond)]++
								mu.Unlock()
							}
						})
					}
				}
				all.Wait()
				sum := 0
				for i := range used {
					sum += used[i]
					last := 0
					for j := i; j >= 0; j-- {
						last += used[j]
						require.LessOrEqual(t, last, 10+rate/100*(i-j+1)+rate/5, "%d to %d", j, i)
					}
				}
				t.Log(sum/seconds, "a second,", store.calls.Load(), "calls")
				require.GreaterOrEqual(t, sum, rate*seconds*93/100)
				require.Less(t, store.calls.Load(), int64(4*seconds*10))
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// Permits that nobody wants come back: of callers that stop, of smaller ones, of those that leave.
func TestAheadGivesBack(t *testing.T) {
	for name, policy := range map[string]*reserve.Policy{
		"pay later": reserve.Must(pace.Bursty(.001, pace.WithCapacity(1000))), "upfront": reserve.Must(pace.TokenBucket(.001, 1000)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(1, 1))
				store := &far{Store: shared.Memory()}
				l, err := shared.NewIn(store, "x", policy, shared.WithAhead(20))
				require.NoError(t, err)
				other, err := shared.NewIn(store, "x", policy)
				require.NoError(t, err)
				used := 0
				for range 60 {
					n := 1 + random.IntN(9)
					r, err := l.Reserve(t.Context(), n)
					require.NoError(t, err)
					require.Equal(t, n, r.Permits())
					switch random.IntN(3) {
					case 0:
						r.Cancel()
						n = 0
					case 1:
						n /= 2
						r.Settle(n)
					}
					used += n
				}
				time.Sleep(700 * time.Millisecond) // six calls take 600 ms
				s, err := other.Snapshot(t.Context())
				require.NoError(t, err)
				require.InDelta(t, 1000-used, s.Level, .1)
				require.Less(t, l.Stats().Calls, uint64(120))
				require.GreaterOrEqual(t, l.Stats().Requests, uint64(60))
			})
		})
	}
}

// stocked returns a limiter that has bought permits ahead, at a rate of 100.
func stocked(t *testing.T, capacity float64) *shared.Limiter {
	policy := reserve.Must(pace.Bursty(100, pace.WithCapacity(capacity)))
	l, err := shared.NewIn(&far{Store: shared.Memory()}, "x", policy, shared.WithAhead(20))
	require.NoError(t, err)
	for range 20 {
		before := l.Stats().Calls
		_, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		if calls := l.Stats().Calls; calls > 2 && calls == before { // out of what was bought ahead
			return l
		}
	}
	t.Fatal("nothing is bought ahead")
	return nil
}

// Permits that were bought ahead are for callers that may wait for them, and not for long after their time.
func TestAheadInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stocked(t, 0)
		calls, requests := l.Stats().Calls, l.Stats().Requests
		r, err := l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.Positive(t, r.Delay())
		require.Equal(t, calls, l.Stats().Calls, "out of what was bought ahead")
		require.Equal(t, requests+1, l.Stats().Requests)
		ok, err := l.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		require.False(t, ok)
		for before := r.At(); before.Before(r.At().Add(200 * time.Millisecond)); {
			next, err := l.Reserve(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, next.At().After(before))
			before = next.At()
		}

		l = stocked(t, 100)
		calls = l.Stats().Calls
		time.Sleep(250 * time.Millisecond) // two calls take 200 ms
		_, err = l.Reserve(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, calls+1, l.Stats().Calls)
		time.Sleep(2 * time.Second)
	})
}

// A cancelled request goes back at once, and is nobody's during a pause or after a reset.
func TestAheadAndChanges(t *testing.T) {
	for name, change := range map[string]func(context.Context, *shared.Limiter) error{
		"pause": func(ctx context.Context, l *shared.Limiter) error {
			return l.PauseUntil(ctx, time.Now().Add(time.Minute))
		},
		"reset": func(ctx context.Context, l *shared.Limiter) error { return l.Reset(ctx) },
		"rate":  func(ctx context.Context, l *shared.Limiter) error { return l.SetRate(ctx, 1e-3) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &far{Store: shared.Memory()}
				l, err := shared.NewIn(store, "x", reserve.Must(pace.TokenBucket(.001, 100)), shared.WithAhead(20))
				require.NoError(t, err)
				require.NoError(t, l.Wait(t.Context()))
				before, err := l.Reserve(t.Context(), 3)
				require.NoError(t, err)
				var all sync.WaitGroup
				all.Go(func() { // more than has been bought
					_, err := l.Reserve(t.Context(), 40)
					require.NoError(t, err)
				})
				store.late.Store(int64(100 * time.Millisecond))
				time.Sleep(70 * time.Millisecond) // the answer is on its way
				store.late.Store(0)
				require.NoError(t, change(t.Context(), l))
				left := map[string]int{"pause": 0, "reset": 100, "rate": 100 - 1 - 40}[name]
				before.Cancel()
				all.Wait()
				granted := 0
				for range 200 {
					if ok, err := l.TryAcquire(t.Context(), 1); err == nil && ok {
						granted++
					}
				}
				require.Equal(t, left, granted)
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// A refused or a single large request, or one that nobody makes any more, costs other processes nothing.
func TestAheadAfterLargeRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, policy := &far{Store: shared.Memory()}, reserve.Must(pace.Bursty(10, pace.WithCapacity(10)))
		l, err := shared.NewIn(store, "x", policy, shared.WithAhead(20))
		require.NoError(t, err)
		other, err := shared.NewIn(store, "x", policy)
		require.NoError(t, err)
		waits := func() {
			for range 100 {
				_, err := l.Acquire(t.Context(), 1)
				require.NoError(t, err)
				waited, err := other.Acquire(t.Context(), 1)
				require.NoError(t, err)
				require.Less(t, waited, time.Second)
			}
		}
		waits()
		_, err = other.Reserve(t.Context(), 15)
		require.NoError(t, err)
		ok, err := l.TryAcquire(t.Context(), 1000)
		require.NoError(t, err)
		require.False(t, ok)
		time.Sleep(time.Second)
		waits()
		_, err = l.Acquire(t.Context(), 200)
		require.NoError(t, err)
		time.Sleep(20 * time.Second)
		waits()
		time.Sleep(2 * time.Second)
	})
}

// Requests of mixed sizes get most of the limit, too.
func TestAheadOfSizes(t *testing.T) {
	for _, sizes := range [][]int{{7, 1}, {200, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 8}, {1, 2, 3, 4}} {
		synctest.Test(t, func(t *testing.T) {
			store, first := &far{Store: shared.Memory()}, sizes[0]
			if first > 1 { // once
				sizes = sizes[1:]
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			var sum atomic.Int64
			var all sync.WaitGroup
			for range 4 {
				l, err := shared.NewIn(store, "x", reserve.Must(pace.Bursty(1000, pace.WithCapacity(10))), shared.WithAhead(64))
				require.NoError(t, err)
				all.Go(func() {
					_, err := l.Acquire(ctx, first)
					require.NoError(t, err)
					for i := 0; ; i++ {
						n := sizes[i%len(sizes)]
						if _, err := l.Acquire(ctx, n); err != nil {
							return
						}
						sum.Add(int64(n))
					}
				})
			}
			all.Wait()
			t.Log(first, sizes, sum.Load()/10, "a second")
			require.Greater(t, sum.Load(), int64(7000-5*first))
			time.Sleep(2 * time.Second)
		})
	}
}

// Callers with little time lose no permits that others have given back, also with hundreds of requests on the way.
func TestAheadLosesNothing(t *testing.T) {
	for _, callers := range []int{1, 300} {
		synctest.Test(t, func(t *testing.T) {
			store, policy := &far{Store: shared.Memory()}, reserve.Must(pace.TokenBucket(.001, 2000))
			l, err := shared.NewIn(store, "x", policy, shared.WithAhead(256))
			require.NoError(t, err)
			other, err := shared.NewIn(store, "x", policy)
			require.NoError(t, err)
			var used atomic.Int64
			for range 900 / callers {
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						require.NoError(t, l.Wait(t.Context()))
						used.Add(1)
					})
				}
				all.Wait()
			}
			time.Sleep(250 * time.Millisecond)
			for range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
				if l.Wait(ctx) == nil {
					used.Add(1)
				}
				cancel()
			}
			require.InDelta(t, used.Load(), l.Stats().Requests, 5)
			time.Sleep(5 * time.Second)
			s, err := other.Snapshot(t.Context())
			require.NoError(t, err)
			require.InDelta(t, float64(2000-used.Load()), s.Level, 5.1) // an answer that comes too late costs its permit
		})
	}
}

// A decision is about all processes, and does not count what others of this process may use.
func TestAheadAndDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stocked(t, 100)
		calls := l.Stats().Calls
		for range 8 {
			_, err := l.Decide(t.Context(), 1)
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, l.Stats().Calls, calls+8)
		l, err := shared.NewIn(&far{Store: shared.Memory()}, "x", reserve.Must(pace.TokenBucket(.001, 100)), shared.WithAhead(20))
		require.NoError(t, err)
		for i := range 8 {
			d, err := l.Decide(t.Context(), 1)
			require.NoError(t, err)
			require.True(t, d.Granted)
			require.InDelta(t, 99-i, d.Left, .1)
		}
		time.Sleep(2 * time.Second)
	})
}

// A process has no more permits in stock than it uses in the time of eight calls.
func TestAheadOfSmallDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, policy := &far{Store: shared.Memory()}, reserve.Must(pace.TokenBucket(.001, 1000))
		l, err := shared.NewIn(store, "x", policy, shared.WithAhead(256))
		require.NoError(t, err)
		for used := 1; used < 100; used++ {
			require.NoError(t, l.Wait(t.Context()))
			s, err := l.Snapshot(t.Context()) // a call that may buy, too
			require.NoError(t, err)
			require.LessOrEqual(t, 1000-s.Level-float64(used), 9.)
		}
		time.Sleep(2 * time.Second)
	})
}

// Permits that come back by the timer say nothing about what callers want, who ask all the time: 2,226 requests, and
// 2,028 if the demand is forgotten then.
func TestAheadWhileSomeComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, policy := &far{Store: shared.Memory()}, reserve.Must(pace.Bursty(1000, pace.WithCapacity(10)))
		l, err := shared.NewIn(store, "x", policy, shared.WithAhead(64))
		require.NoError(t, err)
		n := 0
		for begin := time.Now(); time.Since(begin) < 20*time.Second; n++ {
			require.NoError(t, l.Wait(t.Context()))
			time.Sleep(5 * time.Millisecond)
		}
		require.Greater(t, n, 2130)
		require.Less(t, store.calls.Load(), int64(95))
		time.Sleep(3 * time.Second)
	})
}

// What comes back of a lot that callers share is worth no more than was not used, in Redis as well.
func TestAheadInRedis(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 30))
			policy := reserve.Must(pace.TokenBucket(.001, 1000))
			if seed%2 == 0 {
				policy = reserve.Must(pace.Bursty(.001, pace.WithCapacity(1000)))
			}
			micros := int64(1_790_000_000_000_000)
			l := newShared(t, &seconds{c, &micros}, fmt.Sprint("ahead ", seed), policy, shared.FakeTime(&micros), shared.WithAhead(20))
			used := 0
			for range 60 {
				n := 1 + random.IntN(9)
				r, err := l.Reserve(t.Context(), n)
				require.NoError(t, err)
				if random.IntN(3) > 0 {
					n = random.IntN(n)
					r.Settle(n)
				}
				used += n
			}
			l.GiveBack()
			s, err := l.Snapshot(t.Context())
			require.NoError(t, err)
			require.InDelta(t, 1000-used, s.Level, .5, seed)
		}
	})
}

// A caller's part of a lot gives back no more than its own: the others' parts stay where they are.
func TestPartsOfALot(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		micros := int64(1_790_000_000_000_000)
		sell := func(l *shared.Limiter, n int) shared.Sale {
			s, err := l.Sell(n, math.MaxInt64)
			require.NoError(t, err)
			return s
		}
		l := newShared(t, c, "lot", reserve.Must(pace.Bursty(1, pace.WithCapacity(0))), shared.FakeTime(&micros))
		sell(l, 1)
		last, first := shared.Take(sell(l, 8).Promise(), 7)
		first.Cancel()
		require.Equal(t, int64(8*time.Second), sell(l, 10).Wait)
		last.Cancel()
		require.Equal(t, int64(18*time.Second), sell(l, 1).Wait)

		l = newShared(t, c, "large lot", reserve.Must(pace.TokenBucket(1, 8)), shared.FakeTime(&micros))
		lot := sell(l, 12)
		micros += lot.Wait / 1000
		_, rest := shared.Take(lot.Promise(), 6)
		rest.Cancel()
		stored, _, _, err := l.Look()
		require.NoError(t, err)
		require.InDelta(t, 2, stored, .1)
	})
}

// What is given back without a limit keeps no timer going, and a store that panics there ends no program.
func TestAheadGivesBackAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stocked(t, 100)
		require.NoError(t, l.SetRate(t.Context(), math.Inf(1)))
		time.Sleep(time.Second)
		calls := l.Stats().Calls
		time.Sleep(time.Hour)
		require.Equal(t, calls, l.Stats().Calls)

		store := &far{Store: shared.Memory()}
		l, err := shared.NewIn(store, "x", reserve.Must(pace.TokenBucket(.001, 100)), shared.WithAhead(20))
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, l.Wait(t.Context()))
		}
		store.sick.Store(true)
		time.Sleep(2 * time.Second)
	})
}

// seconds is a Redis whose calls take a second of the test's time.
type seconds struct {
	shared.Scripter
	micros *int64
}

func (s *seconds) Eval(ctx context.Context, script *shared.Script, key string, arg []byte) ([]byte, error) {
	*s.micros += 1_000_000

	return s.Scripter.Eval(ctx, script, key, arg)
}

// What is bought ahead is nobody's during a pause.
func TestAheadAndPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stocked(t, 100)
		calls := l.Stats().Calls
		require.NoError(t, l.PauseUntil(t.Context(), time.Now().Add(time.Minute)))
		ok, err := l.TryAcquire(t.Context(), 1)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, calls+1, l.Stats().Calls) // the answer to the pause says that there are none
	})
}

// Parts of a promise that come back one after the other are worth no more than the permits: no interval has more of
// what was used in the end than the limit allows.
func TestParts(t *testing.T) {
	eachScript(t, func(t *testing.T, c place) {
		for seed := range uint64(c.share(queues(200))) {
			random := rand.New(rand.NewPCG(seed, 20))
			capacity := float64(4 + random.IntN(20))
			policy := reserve.Must(pace.TokenBucket(10, capacity))
			if seed%2 == 0 {
				policy = reserve.Must(pace.Bursty(10, pace.WithCapacity(capacity)))
			}
			micros := int64(1_790_000_000_000_000)
			begin := micros
			l := newShared(t, c, fmt.Sprint("parts ", seed), policy, shared.FakeTime(&micros))
			var sales []*sale
			for range 60 {
				switch random.IntN(4) {
				case 0:
					micros += int64(random.ExpFloat64() * 3e5)
				case 1, 2:
					n := 1 + random.IntN(4)
					got, err := l.Sell(n, math.MaxInt64)
					require.NoError(t, err)
					at := float64(micros-begin)*1000 + float64(got.Wait)
					sales = append(sales, &sale{ready: at, used: n, promise: got.Promise()})
				default:
					if len(sales) == 0 {
						continue
					}
					s := sales[random.IntN(len(sales))]
					if s.used = random.IntN(s.used + 1); s.used == 0 {
						s.promise.Cancel()
					} else if of := s.promise.Permits(); s.used < of {
						var err error
						s.promise, err = shared.Part(s.promise, s.used)
						require.NoError(t, err)
					}
				}
			}
			sales = slices.DeleteFunc(sales, func(s *sale) bool { return s.used == 0 })
			slices.SortStableFunc(sales, func(a, b *sale) int { return cmp.Compare(a.ready, b.ready) })
			for i := range sales {
				sum := 0
				for j := i; j < len(sales); j++ {
					sum += sales[j].used
					room := capacity + (sales[j].ready-sales[i].ready)/1e8 + 1e-3
					if seed%2 == 0 { // pay later: the last one is not paid for
						room += float64(sales[j].used)
					}
					require.LessOrEqual(t, float64(sum), room, "seed %d, %d to %d", seed, i, j)
				}
			}
		}
	})
}
