package bykey_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/warmup"
)

// For every key there is a plain limiter, made when the keys were, and all that
// happens to a key happens to it. Whatever they answer must be the same, though the
// keys' limiters are dropped, made again and grown all the time.
func TestEveryKeyIsLikeAPlainLimiter(t *testing.T) {
	// Rates at which all sums of permits are exact, so that answers can be compared to the bit.
	const interval = 1 << 26 // nanoseconds
	const rate = 1e9 / interval
	variants := map[string]func(o ...reserve.Option) (*reserve.Policy, error){
		"bursty": func(o ...reserve.Option) (*reserve.Policy, error) {
			return pace.Bursty(rate, append(o, pace.WithCapacity(8))...)
		},
		"nothing saved": func(o ...reserve.Option) (*reserve.Policy, error) {
			return pace.Bursty(rate, append(o, pace.WithBurst(0))...)
		},
		"sub-nanosecond": func(o ...reserve.Option) (*reserve.Policy, error) {
			return pace.Bursty(3e9, append(o, pace.WithBurst(0))...)
		},
		"upfront": func(o ...reserve.Option) (*reserve.Policy, error) {
			return pace.Bursty(rate, append(o, pace.WithCapacity(8), reserve.WithStored(8), reserve.PayUpfront())...)
		},
		"longest wait": func(o ...reserve.Option) (*reserve.Policy, error) {
			return pace.Bursty(rate, append(o, pace.WithCapacity(4), reserve.WithMaxWait(4*interval))...)
		},
		"warming up": func(o ...reserve.Option) (*reserve.Policy, error) { return warmup.Policy(rate, s, o...) },
		"no limit":   func(o ...reserve.Option) (*reserve.Policy, error) { return pace.Bursty(math.Inf(1), o...) },
	}
	for name, variant := range variants {
		t.Run(name, func(t *testing.T) {
			var dropped, grown int
			for seed := range uint64(20 / limitertest.Slower) {
				p := newTwins(t, seed, interval, variant)
				p.exact = name != "warming up"
				for range 400 {
					p.step()
				}
				for _, drops := range p.drops {
					dropped += drops
				}
				grown += p.grown
			}
			if name != "no limit" { // of which nothing is ever remembered for long
				require.Greater(t, dropped, 250/limitertest.Slower)
				require.Greater(t, grown, 250/limitertest.Slower)
			}
			t.Logf("%d keys dropped, %d of those had grown into whole limiters", dropped, grown)
		})
	}
}

// A twins is limiters by key and, for each key, a plain one.
type twins struct {
	t        *testing.T
	rand     *rand.Rand
	clock    *clockwork.FakeClock
	interval int64
	rate     float64
	keys     *keyed.Limiters[int]
	plain    []*reserve.Limiter
	seed     uint64
	exact    bool // answers are compared to the bit
	did      string
	promises []promised

	drops [5]int // of each key
	grown int    // of the dropped ones were whole limiters
}

type promised struct {
	keyed, plain *reserve.Reservation
	key, drops   int // how often the key had been dropped before
}

func newTwins(t *testing.T, seed uint64, interval int64, variant func(...reserve.Option) (*reserve.Policy, error)) *twins {
	clock := clockwork.NewFakeClock()
	policy := reserve.Must(variant(reserve.WithClock(clock)))
	p := &twins{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), clock: clock, interval: interval, rate: policy.Limiter().Rate(),
		keys: keyed.New(func(int) (*reserve.Policy, error) { return policy, nil }),
	}
	for range p.drops {
		p.plain = append(p.plain, policy.Limiter())
	}
	return p
}

// A deadline is a context with nothing but that.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }
func (d deadline) Done() <-chan struct{}       { return never }

var never = make(chan struct{})

func (p *twins) step() {
	key := p.rand.IntN(len(p.plain))
	plain, keys := p.plain[key], p.keys.For(key).(keyed.Limiter)
	n := 1 + p.rand.IntN(4)
	switch p.rand.IntN(12) {
	case 0, 1:
		p.same("TryAcquire", plain.TryAcquire(n), keys.TryAcquire(n))
	case 2:
		p.did = "Acquire"
		now := deadline{ctx, p.clock.Now()} // so that no caller sleeps
		_, err := plain.Acquire(now, n)
		_, err2 := keys.Acquire(now, n)
		p.same("Acquire", err, err2)
	case 3, 4:
		p.did = "ReserveWithin"
		within := time.Duration(p.rand.Int64N(10 * p.interval))
		r, err := plain.ReserveWithin(ctx, n, within)
		r2, err2 := keys.ReserveWithin(ctx, n, within)
		p.same("ReserveWithin", err, err2)
		if err == nil {
			p.same("At", r.At(), r2.At())
			p.promises = append(p.promises, promised{plain: &r, keyed: &r2, key: key, drops: p.drops[key]})
		}
	case 5, 6:
		if len(p.promises) > 0 {
			i := p.rand.IntN(len(p.promises))
			actual := max(0, p.rand.IntN(9)-3)
			r := p.promises[i]
			// What comes back after a drop is nothing: the store has been full
			// without it. A plain limiter gets no more either, but notes how far its
			// time has come, and then can't undo its latest reservation as exactly;
			// so it is not told.
			if r.drops == p.drops[r.key] || actual > r.plain.Permits() {
				r.plain.Settle(actual)
			}
			r.keyed.Settle(actual)
			p.promises = append(p.promises[:i], p.promises[i+1:]...)
			p.did = fmt.Sprint("settled at ", actual)
		}
	case 7:
		if p.rand.IntN(8) == 0 {
			until := p.clock.Now().Add(time.Duration(p.rand.Int64N(5 * p.interval)))
			plain.PauseUntil(until)
			keys.PauseUntil(until)
			p.did = "PauseUntil"
		} else if p.rand.IntN(8) == 0 {
			plain.Resume()
			keys.Resume()
			p.did = "Resume"
		}
	case 8:
		if p.rand.IntN(8) == 0 {
			rate := p.rate * []float64{0.5, 1, 1, 1, 2}[p.rand.IntN(5)]
			if p.rand.IntN(2) == 0 {
				p.did = "SetRate"
				p.same("SetRate", plain.SetRate(rate), keys.SetRate(rate))
			} else {
				p.did = "Retime"
				p.same("Retime", plain.Retime(rate), keys.Retime(rate))
			}
		}
	case 9:
		p.did = "a short time"
		p.clock.Advance(time.Duration(p.rand.Int64N(2 * p.interval)))
	case 10:
		p.did = "the debt"
		p.clock.Advance(max(0, plain.NextFree().Sub(p.clock.Now())))
		if !p.exact {
			p.clock.Advance(time.Microsecond)
		}
	default:
		if p.rand.IntN(4) == 0 {
			p.did = "a long time"
			p.clock.Advance(time.Duration(20 * p.interval)) // enough to fill the store
		}
	}
	var had [len(p.drops)]bool
	for key := range had {
		had[key] = inside(p.keys).Has(key)
	}
	grown := inside(p.keys).Promoted()
	inside(p.keys).Sweep()
	p.grown += grown - inside(p.keys).Promoted()
	for key, had := range had {
		if had && !inside(p.keys).Has(key) {
			p.drops[key]++
		}
	}
	for key, plain := range p.plain {
		keys := p.keys.For(key).(keyed.Limiter)
		p.same("Rate", plain.Rate(), keys.Rate())
		p.same("NextFree", plain.NextFree(), keys.NextFree())
		p.same("Stored", plain.Stored(), keys.Stored())
	}
	for _, r := range p.promises {
		p.same("At", r.plain.At(), r.keyed.At())
	}
}

func (p *twins) same(what string, plain, keyed any) {
	p.t.Helper()
	if !p.equal(plain, keyed) {
		require.Equal(p.t, plain, keyed, "%s, seed %d, after %s", what, p.seed, p.did)
	}
}

// equal compares answers. A key's limiter may have a rounding error less than the plain
// one, as it has added up fewer numbers.
func (p *twins) equal(plain, keyed any) bool {
	if plain == keyed {
		return true
	}
	switch plain := plain.(type) {
	case error:
		keyed, ok := keyed.(error)
		return ok && (!p.exact || plain.Error() == keyed.Error())
	case float64:
		return !p.exact && math.Abs(plain-keyed.(float64)) < 1e-9
	case time.Time:
		return plain.Equal(keyed.(time.Time)) || !p.exact && plain.Sub(keyed.(time.Time)).Abs() < time.Microsecond
	default:
		return false
	}
}
