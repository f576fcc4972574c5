package reserve_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// A TryAcquire may be refused by one word, without the lock. It is refused if and only if a twin of the limiter,
// which is asked under the lock, refuses; whatever has been done to both.
func TestRefusedAsUnderTheLock(t *testing.T) {
	const rate = 1000.0
	for name, policy := range map[string]func(rate float64, clock reserve.Option) *reserve.Policy{
		"nothing saved up": func(rate float64, clock reserve.Option) *reserve.Policy {
			return reserve.Must(pace.Bursty(rate, clock, pace.WithBurst(0)))
		},
		"bursty": func(rate float64, clock reserve.Option) *reserve.Policy {
			return reserve.Must(pace.Bursty(rate, clock, pace.WithCapacity(5)))
		},
		"token bucket": func(rate float64, clock reserve.Option) *reserve.Policy {
			return reserve.Must(pace.TokenBucket(rate, 5, clock))
		},
		"an odd rate": func(rate float64, clock reserve.Option) *reserve.Policy {
			return reserve.Must(pace.TokenBucket(rate*0.73, 2.5, clock))
		},
		"warming up": func(rate float64, clock reserve.Option) *reserve.Policy {
			return reserve.Must(warmup.Policy(rate, 20*ms, clock))
		},
	} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				clock := clockwork.NewFakeClock()
				own := reserve.WithClock(clock)
				policies := []*reserve.Policy{policy(rate, own), policy(rate/2, own), policy(rate*3, own)}
				limiter, twin := policies[0].Limiter(), policies[0].Limiter()
				random := rand.New(rand.NewPCG(seed, 13))
				var held []*[2]reserve.Reservation
				granted, refused := 0, 0
				for range 1000 {
					switch op := random.IntN(30); {
					case op < 12:
						clock.Advance(time.Duration(random.IntN(2e6)))
					case op < 14:
						d := limiter.NextFree().Sub(clock.Now())
						if require.Equal(t, d, twin.NextFree().Sub(clock.Now())); d > 0 {
							clock.Advance(d)
						}
					case op < 17 && len(held) < 5:
						var both [2]reserve.Reservation
						n := 1 + random.IntN(4)
						var err error
						both[0], err = limiter.Reserve(ctx, n)
						require.NoError(t, err)
						both[1], err = twin.Reserve(ctx, n)
						require.NoError(t, err)
						held = append(held, &both)
					case op < 22 && len(held) > 0:
						i := random.IntN(len(held))
						actual := random.IntN(5)
						held[i][0].Settle(actual)
						held[i][1].Settle(actual)
						held = append(held[:i], held[i+1:]...)
					case op == 22:
						until := clock.Now().Add(time.Duration(random.IntN(1e7)))
						limiter.PauseUntil(until)
						twin.PauseUntil(until)
					case op == 23:
						limiter.Resume()
						twin.Resume()
					case op == 24:
						r := rate * []float64{0.5, 1, 2, math.Inf(1)}[random.IntN(4)]
						require.NoError(t, limiter.Retime(r))
						require.NoError(t, twin.Retime(r))
					case op == 25:
						r := rate * []float64{0.5, 1, 2, math.Inf(1)}[random.IntN(4)]
						require.NoError(t, limiter.SetRate(r))
						require.NoError(t, twin.SetRate(r))
					case op == 26:
						p := policies[random.IntN(3)]
						require.NoError(t, limiter.SetPolicy(p))
						require.NoError(t, twin.SetPolicy(p))
					}
					for range random.IntN(4) {
						n := 1 + random.IntN(3)
						require.NoError(t, twin.SetRate(twin.Rate())) // forgets what is known without the lock
						want, got := twin.TryAcquire(n), limiter.TryAcquire(n)
						if want && !got { // a time is rounded: a nanosecond later it is
							clock.Advance(1)
							got = limiter.TryAcquire(n)
						}
						require.Equal(t, want, got, "TryAcquire(%d), next free in %v", n, limiter.NextFree().Sub(clock.Now()))
						if want {
							granted++
						} else {
							refused++
						}
					}
				}
				require.Greater(t, granted, 50)
				require.Greater(t, refused, 50)
			})
		}
	}
}

// While others poll for more than there will ever be, and so keep the word up to date, a permit that has become
// free is granted to the next TryAcquire: the clock stands still, so nothing else makes it so.
func TestRefusalsEndAtOnce(t *testing.T) {
	t.Run("", func(t *testing.T) { refusalsEndAtOnce(t, func(*reserve.Limiter) {}) })
	t.Run("counted", func(t *testing.T) { refusalsEndAtOnce(t, func(l *reserve.Limiter) { l.Snapshot() }) })
}

func refusalsEndAtOnce(t *testing.T, begin func(*reserve.Limiter)) {
	clock := clockwork.NewFakeClock()
	own := reserve.WithClock(clock)
	policy := reserve.Must(pace.TokenBucket(10, 5, own))
	faster := reserve.Must(pace.TokenBucket(10, 6, own, reserve.WithStored(0)))
	l := policy.Limiter()
	begin(l)
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for !stop.Load() {
				if l.TryAcquire(math.MaxInt) {
					t.Error("more than there will ever be")
				}
			}
		})
	}
	polled := func() { // by all, most likely
		for range 50 {
			if l.TryAcquire(math.MaxInt) {
				t.Error("more than there will ever be")
			}
		}
	}
	for range 300 {
		clock.Advance(s)
		require.NoError(t, l.SetPolicy(policy))
		for what, free := range map[string]func(r *reserve.Reservation){
			"Cancel": func(r *reserve.Reservation) { r.Cancel() },
			"Settle": func(r *reserve.Reservation) { r.Settle(4) },
			"Resume": func(r *reserve.Reservation) {
				l.PauseUntil(clock.Now().Add(s))
				polled()
				r.Cancel()
				polled()
				l.Resume()
			},
			"SetRate":   func(*reserve.Reservation) { require.NoError(t, l.SetRate(1e12)) },
			"Retime":    func(*reserve.Reservation) { require.NoError(t, l.Retime(1e12)) },
			"SetPolicy": func(r *reserve.Reservation) { r.Settle(4); require.NoError(t, l.SetPolicy(faster)) },
			"time":      func(*reserve.Reservation) { clock.Advance(100 * ms) },
		} {
			r, err := l.ReserveWithin(ctx, 5, 0)
			require.NoError(t, err, what)
			polled()
			require.False(t, l.TryAcquire(1), what)
			free(&r)
			require.True(t, l.TryAcquire(1), what)
			require.NoError(t, l.SetRate(10))
			require.NoError(t, l.SetPolicy(policy))
			clock.Advance(s)
		}
	}
	stop.Store(true)
	all.Wait()
}
