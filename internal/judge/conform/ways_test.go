package conform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// A way is how a limiter comes to another policy.
type way struct {
	try    func(n int) bool
	peek   func() time.Duration
	change func(p *reserve.Policy)
}

func ofLimiter(l **reserve.Limiter) way {
	return way{try: func(n int) bool { return (*l).TryAcquire(n) }, peek: func() time.Duration {
		return max(0, time.Until((*l).NextFree()))
	}}
}

// live, restarted, keyedRefresh and stored are all ways. Each begins with a full store.
func live(t *testing.T, p *reserve.Policy) way {
	l := p.Limiter()
	w := ofLimiter(&l)
	w.change = func(p *reserve.Policy) { require.NoError(t, l.SetPolicy(p)) }
	return w
}

func restarted(t *testing.T, p *reserve.Policy) way {
	l := p.Limiter()
	w := ofLimiter(&l)
	w.change = func(p *reserve.Policy) {
		state, err := l.AppendBinary(nil)
		require.NoError(t, err)
		l, err = p.Restore(state)
		require.NoError(t, err)
	}
	return w
}

func keyedRefresh(t *testing.T, p *reserve.Policy) way {
	// A key whose store is full may be forgotten, and a larger store of its begins full. While its policy is good it is not.
	k := keyed.New(func(string) (*reserve.Policy, error) { return p, nil }, keyed.WithTTL(1000*time.Hour))
	return way{
		try: func(n int) bool { return k.TryAcquire("a", n) },
		peek: func() time.Duration {
			d, err := k.Peek("a", 1)
			require.NoError(t, err)
			return d
		},
		change: func(to *reserve.Policy) {
			p = to
			require.NoError(t, k.Refresh("a"))
		},
	}
}

func stored(t *testing.T, p *reserve.Policy) way {
	store := shared.Memory()
	open := func(p *reserve.Policy) *shared.Limiter {
		l, err := shared.NewIn(store, "a", p)
		require.NoError(t, err)
		return l
	}
	l := open(p)
	return way{
		try: func(n int) bool {
			ok, err := l.TryAcquire(context.Background(), n)
			if large := (*reserve.SizeError)(nil); !errors.As(err, &large) {
				require.NoError(t, err)
			}
			return ok
		},
		peek: func() time.Duration {
			s, err := l.Snapshot(context.Background())
			require.NoError(t, err)
			return s.Wait
		},
		change: func(p *reserve.Policy) { l = open(p) },
	}
}

// policies makes a policy of a kind by chance. All policies of a kind can follow each other.
var policies = map[string]func(r *rand.Rand) *reserve.Policy{
	"bursty": func(r *rand.Rand) *reserve.Policy {
		return reserve.Must(pace.Bursty(someRate(r), pace.WithBurst(someTime(r)), reserve.WithStored(math.Inf(1))))
	},
	"bursty of permits": func(r *rand.Rand) *reserve.Policy {
		capacity := pace.WithCapacity(float64(r.IntN(20)))
		return reserve.Must(pace.Bursty(someRate(r), capacity, reserve.WithStored(math.Inf(1))))
	},
	"bursty of both": func(r *rand.Rand) *reserve.Policy {
		size := pace.WithCapacity(float64(r.IntN(20)))
		if r.IntN(2) == 0 {
			size = pace.WithBurst(someTime(r))
		}
		return reserve.Must(pace.Bursty(someRate(r), size, reserve.WithStored(math.Inf(1))))
	},
	"bursty, upfront": func(r *rand.Rand) *reserve.Policy {
		burst := pace.WithBurst(someTime(r))
		return reserve.Must(pace.Bursty(someRate(r), burst, reserve.WithStored(math.Inf(1)), reserve.PayUpfront()))
	},
	"token bucket": func(r *rand.Rand) *reserve.Policy {
		return reserve.Must(pace.TokenBucket(someRate(r), float64(1+r.IntN(20))))
	},
	"warm-up": func(r *rand.Rand) *reserve.Policy {
		return reserve.Must(warmup.Policy(someRate(r), someTime(r), warmup.WithColdFactor(1+4*r.Float64())))
	},
	"warm-up, upfront": func(r *rand.Rand) *reserve.Policy {
		return reserve.Must(warmup.Policy(someRate(r), someTime(r), reserve.PayUpfront()))
	},
	"window": func(r *rand.Rand) *reserve.Policy {
		opts := []reserve.Option{}
		if r.IntN(3) == 0 {
			opts = append(opts, window.WithMargin(someTime(r)))
		}
		return reserve.Must(window.Policy(1+r.IntN(20), someTime(r), opts...))
	},
	"calendar": func(r *rand.Rand) *reserve.Policy {
		opts := []reserve.Option{}
		if r.IntN(2) == 0 {
			opts = append(opts, calendar.Spread(1+3*r.Float64()))
		}
		return reserve.Must(calendar.Policy(1+r.IntN(50), somePeriod(r), opts...))
	},
}

func someRate(r *rand.Rand) float64 { return []float64{0.01, 0.3, 1, 3, 10, 1000}[r.IntN(6)] }

func someTime(r *rand.Rand) time.Duration {
	return []time.Duration{50 * time.Millisecond, time.Second, 3 * time.Second, time.Minute, time.Hour}[r.IntN(5)]
}

func somePeriod(r *rand.Rand) calendar.Period {
	east := time.FixedZone("east", 9*3600)
	return []calendar.Period{
		calendar.Every(time.Second), calendar.Every(time.Hour), calendar.FromFirst(time.Second), calendar.FromFirst(5 * time.Hour),
		calendar.Daily(time.UTC, 0), calendar.Daily(east, 2*time.Hour), calendar.Weekly(time.UTC, time.Monday, 0),
		calendar.Monthly(time.UTC, 31),
	}[r.IntN(8)]
}

// Requests, and changes to other policies of the same kind while nobody waits, have the same answers whichever way the
// changes are made.
func TestWaysOfChanging(t *testing.T) {
	ways := map[string]func(*testing.T, *reserve.Policy) way{
		"restarted": restarted, "keyed": keyedRefresh, "stored": stored,
	}
	for kind, policy := range policies {
		t.Run(kind, func(t *testing.T) {
			for seed := range rounds(200) {
				synctest.Test(t, func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(seed), 1))
					first := policy(r)
					want, all := live(t, first), map[string]way{}
					for name, make := range ways {
						all[name] = make(t, first)
					}
					log := " try 1" // a key without requests is not remembered
					for _, w := range all {
						w.try(1)
					}
					want.try(1)
					for range 30 {
						switch k := r.IntN(10); {
						case k < 3:
							d := time.Duration(float64(someTime(r)) * r.Float64() * 1.5)
							time.Sleep(d)
							log += fmt.Sprintf(" sleep %v", d)
						case k < 5:
							p := policy(r)
							want.change(p)
							for _, w := range all {
								w.change(p)
							}
							log += fmt.Sprintf(" change to %s", describe(p))
						default:
							n := 1 + r.IntN(6)
							ok := want.try(n)
							log += fmt.Sprintf(" try %d: %v", n, ok)
							for name, w := range all {
								require.Equal(t, ok, w.try(n), "%s, seed %d:%s", name, seed, log)
							}
						}
						wait := want.peek()
						log += fmt.Sprintf(" (%v)", wait)
						for name, w := range all {
							require.InDelta(t, wait, w.peek(), 2, "%s, seed %d:%s", name, seed, log)
						}
					}
				})
			}
		})
	}
}

// describe returns a limiter's rate, and what it can hold.
func describe(p *reserve.Policy) string {
	s := p.Limiter().Snapshot()
	return fmt.Sprintf("%.4v at %v/s", s.Capacity, s.Rate)
}

func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}
