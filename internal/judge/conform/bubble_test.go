package conform

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

var errGone = errors.New("the caller has gone")

// A caller in a script asks, may give up while it waits, or else holds what it got for a while and
// settles.
type caller struct {
	asks, givesUp, holds time.Duration // givesUp: after asking; 0: never
	permits, actual      int
}

// script is a random one, of a limiter that is asked for somewhat more than it has.
func script(seed uint64, n int, interval time.Duration) []caller {
	random := rand.New(rand.NewPCG(2, seed))
	all := make([]caller, n)
	t := time.Duration(0)
	for i := range all {
		c := caller{asks: t, permits: 1 + random.IntN(8)}
		c.actual = c.permits - random.IntN(c.permits+1)
		if random.IntN(8) == 0 {
			c.actual = c.permits + random.IntN(4)
		}
		if random.IntN(3) == 0 {
			c.givesUp = 1 + below(random, 20*interval)
		}
		c.holds = 1 + below(random, 30*interval)
		all[i] = c
		t += 1 + below(random, 4*interval)
	}
	return all
}

func below(random *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(d)))
}

// play plays a script on the model, and says when each caller goes: -1 for callers that give up.
func (k kind) play(callers []caller) []time.Duration {
	type event struct {
		at time.Duration
		do func()
	}
	m, now := k.model(), time.Duration(0)
	goes := make([]time.Duration, len(callers))
	ids := make([]int, len(callers))
	var events []event
	plan := func(at time.Duration, do func()) {
		events = append(events, event{at, do})
		slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	}
	for i, c := range callers {
		goes[i] = -1
		plan(c.asks, func() { ids[i], _, _ = m.Reserve(c.permits, math.Inf(1)) })
		if c.givesUp > 0 {
			plan(c.asks+c.givesUp, func() {
				if goes[i] < 0 {
					m.Settle(ids[i], 0)
				}
			})
		}
	}
	for len(events) > 0 || len(m.Waiting()) > 0 {
		next := time.Duration(math.MaxInt64)
		if len(events) > 0 {
			next = events[0].at
		}
		if waiting := m.Waiting(); len(waiting) > 0 {
			next = min(next, time.Duration(math.Ceil(m.Times()[waiting[0]])))
		}
		m.Advance(float64(next - now))
		now = next
		if len(events) > 0 && events[0].at == now {
			do := events[0].do
			events = events[1:]
			do()
		}
		waiting, times := m.Waiting(), m.Times()
		for i, c := range callers {
			if ids[i] == 0 || goes[i] >= 0 || slices.Contains(waiting, ids[i]) {
				continue
			}
			if at, gone := times[ids[i]]; gone {
				goes[i] = time.Duration(math.Floor(at))
				plan(now+c.holds, func() { m.Settle(ids[i], c.actual) })
			}
		}
	}
	return goes
}

// Goroutines that really wait go when the model says, though their times move all the while.
func TestWaitingInABubble(t *testing.T) {
	for _, k := range []kind{
		{rate: 1000, fixed: 0, isFixed: true},
		{rate: 1000, fixed: 20, isFixed: true, stored: 20},
		{rate: 1000, fixed: 20, isFixed: true, stored: 20, upfront: true},
		{rate: 1000, fixed: 5, isFixed: true, upfront: true},
		{rate: 1000, burst: time.Second},
	} {
		for seed := range uint64(2) {
			callers := script(seed, 100, time.Millisecond)
			want := k.play(callers)
			gaveUp := 0
			synctest.Test(t, func(t *testing.T) {
				limiter, err := k.limiter()
				require.NoError(t, err)
				begin := time.Now()
				got := make([]time.Duration, len(callers))
				var group sync.WaitGroup
				for i, c := range callers {
					group.Go(func() {
						time.Sleep(c.asks)
						ctx, cancel := context.WithCancelCause(context.Background())
						defer cancel(nil)
						if c.givesUp > 0 {
							defer time.AfterFunc(c.givesUp, func() { cancel(errGone) }).Stop()
						}
						r, err := limiter.Reserve(ctx, c.permits)
						require.NoError(t, err)
						if err := r.Wait(ctx); err != nil {
							require.ErrorIs(t, err, errGone)
							got[i] = -1
							return
						}
						got[i] = time.Since(begin)
						time.Sleep(c.holds)
						r.Settle(c.actual)
					})
				}
				group.Wait()
				for i := range callers {
					require.InDelta(t, want[i], got[i], 1000, "%v, script %d, caller %d: got %v, the model %v", k, seed, i, got[i], want[i])
					if got[i] < 0 {
						gaveUp++
					}
				}
			})
			require.Positive(t, gaveUp)
			require.Less(t, gaveUp, len(callers)/2)
		}
	}
}

// A hundred asleep give up, in any order: the next one sleeps for one permit.
func TestGhostsInABubble(t *testing.T) {
	for name, order := range orders(100) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limiter, err := pace.NewBursty(10)
				require.NoError(t, err)
				require.True(t, limiter.Allow())
				var group sync.WaitGroup
				cancels := make([]context.CancelFunc, 100)
				for i := range cancels {
					var ctx context.Context
					ctx, cancels[i] = context.WithCancel(t.Context())
					group.Go(func() {
						_, err := limiter.Acquire(ctx, 1)
						require.ErrorIs(t, err, context.Canceled)
					})
				}
				synctest.Wait()
				for _, i := range order {
					cancels[i]()
				}
				group.Wait()
				waited, err := limiter.Acquire(t.Context(), 1)
				require.NoError(t, err)
				require.Equal(t, 100*ms, waited)
			})
		})
	}
}

// Callers come at three times the rate, and two of three give up before they are due. All of the rate is used, and no
// two go closer than the interval.
func TestSaturatedWhileHalfGiveUp(t *testing.T) {
	for _, rate := range []float64{100, 7.7} {
		synctest.Test(t, func(t *testing.T) {
			limiter, err := pace.NewBursty(rate, pace.WithBurst(0))
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(7, 7))
			interval := time.Duration(1e9 / rate)
			begin := time.Now()
			var mu sync.Mutex
			var went []time.Duration
			var group sync.WaitGroup
			for range 3000 {
				stays := random.IntN(3) > 0
				patience := below(random, 20*interval)
				group.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if !stays {
						defer time.AfterFunc(patience, cancel).Stop()
					}
					if _, err := limiter.Acquire(ctx, 1); err == nil {
						mu.Lock()
						defer mu.Unlock()
						went = append(went, time.Since(begin))
					}
				})
				time.Sleep(interval / 3)
			}
			busy := time.Since(begin)
			group.Wait()
			slices.Sort(went)
			for i := 1; i < len(went); i++ { // an interval is no whole number of nanoseconds
				require.GreaterOrEqual(t, went[i]-went[i-1], interval-1)
			}
			inTime, _ := slices.BinarySearch(went, busy)
			require.GreaterOrEqual(t, float64(inTime), 0.99*rate*busy.Seconds())
		})
	}
}

// Callers reserve twice what they turn out to need, hold it for a while, and come again at once.
func TestSettlersUseTheRate(t *testing.T) {
	for _, c := range []struct {
		name              string
		burst, holds      time.Duration
		callers, estimate int
		least, most       int
		used              float64 // of the rate
	}{
		{"half of 500", 0, 200 * ms, 16, 500, 250, 250, 1},
		{"half of 500, a second saved up", time.Second, 200 * ms, 16, 500, 250, 250, 1},
		// The design's table.
		{"nothing saved up", 0, 200 * ms, 16, 1000, 300, 500, 0.999},
		{"a second, for 2 s", time.Second, 2 * time.Second, 64, 1000, 300, 500, 0.6}, // the table's prototype had 0.643
		{"a second, for 8 s", time.Second, 8 * time.Second, 64, 1000, 300, 500, 0.458},
		{"a minute, 16 callers", time.Minute, 2 * time.Second, 16, 1000, 300, 500, 0.994},
		{"a minute, 64 callers", time.Minute, 8 * time.Second, 64, 1000, 300, 500, 0.997},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rate = 1000
				limiter, err := pace.NewBursty(rate, pace.WithBurst(c.burst))
				require.NoError(t, err)
				// From the begin on, until what is saved up makes no difference.
				begin, warm, last := time.Now(), 100*time.Second, 500*time.Second
				var mu sync.Mutex
				used := 0
				var group sync.WaitGroup
				for i := range c.callers {
					random := rand.New(rand.NewPCG(3, uint64(i)))
					group.Go(func() {
						for time.Since(begin) < last {
							r, err := limiter.Reserve(t.Context(), c.estimate)
							require.NoError(t, err)
							require.NoError(t, r.Wait(t.Context()))
							at := time.Since(begin)
							time.Sleep(c.holds)
							actual := c.least + random.IntN(c.most-c.least+1)
							r.Settle(actual)
							mu.Lock()
							if warm <= at && at < last {
								used += actual
							}
							mu.Unlock()
						}
					})
				}
				group.Wait()
				share := float64(used) / rate / (last - warm).Seconds()
				t.Logf("%.0f/s used of %d/s", share*rate, rate)
				require.InEpsilon(t, c.used, share, 0.03)
				require.LessOrEqual(t, share, 1.01)
			})
		})
	}
}

// What is charged afterwards, and given back, never breaks the order of the sleeping callers.
func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := pace.NewBursty(10, pace.WithBurst(0))
		require.NoError(t, err)
		gone, err := limiter.Reserve(t.Context(), 50)
		require.NoError(t, err)
		var order []int
		var mu sync.Mutex
		var group sync.WaitGroup
		var queue [20]reserve.Reservation
		for i := range queue {
			queue[i], err = limiter.Reserve(t.Context(), 1+i%3)
			require.NoError(t, err)
			group.Go(func() {
				if queue[i].Wait(t.Context()) == nil {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
				}
			})
		}
		time.Sleep(250 * ms)
		gone.Settle(1)
		for i := 1; i < 20; i += 4 {
			queue[i].Cancel()
			time.Sleep(70 * ms)
		}
		group.Wait()
		require.True(t, slices.IsSorted(order), "%v", order)
		require.Greater(t, len(order), 14)
	})
}
