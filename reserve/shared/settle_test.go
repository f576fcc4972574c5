package shared_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// A request that waits for its own permits, and settles for less, may go when these are there.
func TestSettledWhileItWaits(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for i, v := range []struct {
			policy             *reserve.Policy
			first, n, settled  int
			promised, then, by time.Duration // by: when another permit is free
		}{
			{reserve.Must(pace.TokenBucket(1, 1)), 1, 3, 2, 3 * time.Second, 2 * time.Second, 3 * time.Second},
			{reserve.Must(pace.TokenBucket(1, 5)), 4, 3, 1, 2 * time.Second, 0, time.Second},
			{reserve.Must(pace.TokenBucket(1, 5)), 4, 8, 6, 7 * time.Second, 5 * time.Second, 6 * time.Second},
			{reserve.Must(pace.Bursty(2, pace.WithBurst(time.Second), reserve.PayUpfront())), 2, 4, 1, 2 * time.Second, time.Second / 2, time.Second},
			{reserve.Must(pace.Bursty(1, pace.WithCapacity(1))), 3, 4, 1, 2 * time.Second, 2 * time.Second, 3 * time.Second},
		} {
			g := newGroup(t, c, fmt.Sprint("settled ", i), 2, v.policy)
			g.sell(v.first)
			s := g.sell(v.n)
			require.Equal(t, v.promised, s.Promise().Delay(), i)
			s.Promise().Settle(v.settled)
			require.Equal(t, v.then, s.Promise().Delay(), i)
			require.Equal(t, v.by, time.Duration(g.sell(1).Wait), i)
		}
	})
}

// Where nobody waits, a request for more than is ever there at once is too large. A caller that waits gets it.
func TestMoreThanIsEverThere(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for i, p := range []*reserve.Policy{
			reserve.Must(pace.TokenBucket(1, 5)), reserve.Must(warmup.Policy(1, 10*time.Second, reserve.PayUpfront())),
			reserve.Must(pace.Bursty(0.5, pace.WithBurst(time.Second), reserve.PayUpfront())),
		} {
			most := []int{5, 1, 1}[i]
			l := newGroup(t, c, fmt.Sprint("more ", i), 1, p).processes[0]
			_, err := l.ReserveWithin(t.Context(), most+1, 0)
			require.Equal(t, &reserve.SizeError{Permits: most + 1, Max: most}, err)
			ok, err := l.TryAcquire(t.Context(), most+1)
			require.NoError(t, err)
			require.False(t, ok)
			_, err = l.ReserveWithin(t.Context(), most+1, time.Hour)
			require.NoError(t, err)
		}
	})
}

// A request that waited for its own permits, and settles for less after it was granted, had no more than these.
func TestSettledAfterItWaited(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		g := newGroup(t, c, "waited", 2, reserve.Must(warmup.Policy(5, 2*time.Second, reserve.PayUpfront())))
		g.sell(4)
		large := g.sell(8)
		g.sell(2)
		g.sleep(large.Promise().Delay())
		large.Promise().Settle(4)
		require.GreaterOrEqual(t, time.Duration(g.sell(2).Wait), 400*time.Millisecond) // behind the two that wait
	})
}

// The same in a window and a calendar, and as a limiter alone does it.
func TestSettledWhileItWaitsInALedger(t *testing.T) {
	for name, p := range map[string]*reserve.Policy{
		"window":   reserve.Must(window.Policy(5, time.Minute)),
		"calendar": reserve.Must(calendar.Policy(5, calendar.Every(time.Minute))),
		"bucket":   reserve.Must(pace.TokenBucket(1, 5)),
		"warm-up":  reserve.Must(warmup.Policy(5, time.Minute, reserve.PayUpfront())),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := reserve.Must(shared.NewIn(shared.Memory(), "l", p))
				alone := p.Limiter()
				take := func(by reserve.Reserver, n int) *reserve.Reservation {
					r, err := by.ReserveWithin(t.Context(), n, reserve.Forever)
					require.NoError(t, err)
					return &r
				}
				for _, by := range []reserve.Reserver{l, alone} {
					take(by, 4)
				}
				here, there := take(l, 3), take(alone, 3)
				require.InDelta(t, there.Delay(), here.Delay(), 1)
				here.Settle(1)
				there.Settle(1)
				require.InDelta(t, there.Delay(), here.Delay(), 1)
				want, begin := there.Delay(), time.Now()
				require.NoError(t, here.Wait(context.Background()))
				require.InDelta(t, want, time.Since(begin), 1)
			})
		})
	}
}

// However requests settle for less while they wait, no more is granted than the bucket holds and gets.
func TestSettledWhileTheyWaitMintsNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		moved := 0
		for seed := range uint64(c.share(60)) {
			random := rand.New(rand.NewPCG(seed, 50))
			capacity := []float64{1, 3, 10}[random.IntN(3)]
			g := newGroup(t, c, fmt.Sprint("mint ", seed), 2, reserve.Must(pace.TokenBucket(10, capacity)))
			type use struct {
				promise reserve.Promise
				at      time.Time // when it is granted, as far as is known
				permits int
			}
			var uses []use
			now := func() time.Time { return time.Unix(0, (*g.micros%1e12)*1000) }
			for range 60 {
				switch random.IntN(5) {
				case 0, 1:
					n := 1 + random.IntN(int(2*capacity))
					s := g.sell(n)
					uses = append(uses, use{s.Promise(), now().Add(time.Duration(s.Wait)), n})
				case 2:
					g.sleep(time.Duration(random.ExpFloat64() * float64(300*time.Millisecond)))
				default:
					if len(uses) == 0 {
						break
					}
					u := &uses[random.IntN(len(uses))]
					if u.permits > 1 && u.at.After(now()) && u.promise.Permits() == u.permits {
						u.permits = 1 + random.IntN(u.permits-1)
						u.promise.Settle(u.permits)
						at := now().Add(u.promise.Delay())
						require.LessOrEqual(t, at, u.at)
						if at.Before(u.at) {
							moved++
						}
						u.at = at
					}
				}
			}
			for _, from := range uses {
				for _, to := range uses {
					if to.at.Before(from.at) {
						continue
					}
					sum, largest := 0, 0
					for _, u := range uses {
						if !u.at.Before(from.at) && !u.at.After(to.at) {
							sum, largest = sum+u.permits, max(largest, u.permits)
						}
					}
					most := max(capacity, float64(largest)) + 10*to.at.Sub(from.at).Seconds() + 1e-3
					require.LessOrEqual(t, float64(sum), most, "seed %d, capacity %v", seed, capacity)
				}
			}
		}
		require.Positive(t, moved)
	})
}
