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
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/pool"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

func ofKey(p *reserve.Policy) reserve.Reserver {
	return keyed.New(func(string) (*reserve.Policy, error) { return p, nil }).For("a")
}

func ofStore(p *reserve.Policy) reserve.Reserver {
	return reserve.Must(shared.NewIn(shared.Memory(), "a", p))
}

func ofClass(by reserve.Reserver) reserve.Reserver {
	return reserve.Must(fair.New(by, []fair.Class{{Name: "a"}, {Name: "b"}})).Class("a")
}

func limitOfClass(by reserve.Reserver) reserve.Reserver {
	return reserve.Must(fair.New(plenty(), []fair.Class{{Name: "a", Limit: by}, {Name: "b"}})).Class("a")
}

func ofPool(by reserve.Reserver) reserve.Reserver {
	return reserve.Must(pool.New([]pool.Member[int]{{By: by}})).Reserver()
}

func plenty() reserve.Reserver { return reserve.Must(pace.NewBursty(math.Inf(1))) }

// A users Reserver has no other method.
type users struct{ reserve.Reserver }

// stands are where a limit may stand.
var stands = map[string]func(p *reserve.Policy) reserve.Reserver{
	"alone": func(p *reserve.Policy) reserve.Reserver { return p.Limiter() },
	"key":   ofKey,
	"store": ofStore,
	"key in a store": func(p *reserve.Policy) reserve.Reserver {
		return reserve.Must(shared.NewKeyedIn(shared.Memory(), p)).For("a")
	},
	"fair":                 func(p *reserve.Policy) reserve.Reserver { return ofClass(p.Limiter()) },
	"fair, key":            func(p *reserve.Policy) reserve.Reserver { return ofClass(ofKey(p)) },
	"fair, store":          func(p *reserve.Policy) reserve.Reserver { return ofClass(ofStore(p)) },
	"fair, pool":           func(p *reserve.Policy) reserve.Reserver { return ofClass(ofPool(p.Limiter())) },
	"fair, user's":         func(p *reserve.Policy) reserve.Reserver { return ofClass(users{p.Limiter()}) },
	"class's limit":        func(p *reserve.Policy) reserve.Reserver { return limitOfClass(p.Limiter()) },
	"class's limit, key":   func(p *reserve.Policy) reserve.Reserver { return limitOfClass(ofKey(p)) },
	"class's limit, store": func(p *reserve.Policy) reserve.Reserver { return limitOfClass(ofStore(p)) },
	"pool":                 func(p *reserve.Policy) reserve.Reserver { return ofPool(p.Limiter()) },
	"pool, key":            func(p *reserve.Policy) reserve.Reserver { return ofPool(ofKey(p)) },
	"pool, fair":           func(p *reserve.Policy) reserve.Reserver { return ofPool(ofClass(p.Limiter())) },
	"pool, store":          func(p *reserve.Policy) reserve.Reserver { return ofPool(ofStore(p)) },
	"all":                  func(p *reserve.Policy) reserve.Reserver { return reserve.All(plenty(), p.Limiter()) },
	"all, key":             func(p *reserve.Policy) reserve.Reserver { return reserve.All(ofKey(p), plenty()) },
	"all, store":           func(p *reserve.Policy) reserve.Reserver { return reserve.All(plenty(), ofStore(p)) },
	"all, pool":            func(p *reserve.Policy) reserve.Reserver { return reserve.All(ofPool(ofKey(p)), plenty()) },
}

// Whoever is refused, and told when, is granted then, if no other waits. Or the limit says that no such time comes.
func TestToldAnywhere(t *testing.T) {
	for stand, make := range stands {
		for kind, policy := range policies {
			t.Run(stand+"/"+kind, func(t *testing.T) {
				for seed := range rounds(3) {
					synctest.Test(t, func(t *testing.T) {
						r := rand.New(rand.NewPCG(uint64(seed), 9))
						time.Sleep(time.Duration(r.Int64N(int64(400 * 24 * time.Hour))))
						p := policy(r)
						told{Rand: r, t: t, by: make(p), log: fmt.Sprintf("seed %d, %s:", seed, describe(p))}.play()
					})
				}
			})
		}
	}
}

type told struct {
	*rand.Rand
	t   *testing.T
	by  reserve.Reserver
	log string
	all []*reserve.Reservation
}

func (p told) play() {
	for range 25 {
		for _, r := range p.all {
			if r.Delay() > 0 {
				r.Cancel()
			}
		}
		n := 1 + p.IntN(5)
		switch k := p.IntN(8); {
		case k < 2:
			time.Sleep(time.Duration(float64(someTime(p.Rand)) * p.Float64()))
		case k == 2:
			_ = p.reserve(n, reserve.Forever)
		case k == 3 && len(p.all) > 0:
			p.all[p.IntN(len(p.all))].Settle(p.IntN(8))
		default:
			p.ask(n)
		}
	}
}

func (p *told) reserve(n int, maxWait time.Duration) error {
	r, err := p.by.ReserveWithin(p.t.Context(), n, maxWait)
	if err == nil {
		p.all = append(p.all, &r)
	}
	p.log += fmt.Sprintf(" [%v] %d within %v: %v", time.Now().Format(time.StampNano), n, maxWait, err)
	return err
}

func (p *told) ask(n int) {
	maxWait := time.Duration(p.IntN(2)) * time.Duration(float64(someTime(p.Rand))*p.Float64())
	err := p.reserve(n, maxWait)
	large, late := (*reserve.SizeError)(nil), (*reserve.WaitError)(nil)
	if err == nil || errors.As(err, &large) || maxWait > 0 && errors.As(p.reserve(n, 0), &large) {
		return
	}
	require.ErrorAs(p.t, err, &late, p.log)
	require.Greater(p.t, late.Wait, maxWait, p.log)
	time.Sleep(late.Wait - maxWait)
	require.NoError(p.t, p.reserve(n, maxWait), p.log)
}

// What a caller gives back is there for the next, however soon that asks.
func TestGivenBackAnywhere(t *testing.T) {
	for stand, make := range stands {
		t.Run(stand, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				by, ctx := make(reserve.Must(pace.TokenBucket(1, 2))), context.Background()
				granted, err := by.ReserveWithin(ctx, 2, 0)
				require.NoError(t, err)
				granted.Cancel()
				granted, err = by.ReserveWithin(ctx, 2, 0)
				require.NoError(t, err)
				for range 5 {
					waits, err := by.ReserveWithin(ctx, 2, reserve.Forever)
					require.NoError(t, err)
					require.InDelta(t, 2*time.Second, waits.Delay(), 10)
					waits.Cancel()
					_, err = by.ReserveWithin(ctx, 1, 0)
					var late *reserve.WaitError
					require.ErrorAs(t, err, &late)
					require.InDelta(t, time.Second, late.Wait, 10)
				}
				granted.Settle(1)
				_, err = by.ReserveWithin(ctx, 1, 0)
				require.NoError(t, err)
			})
		})
	}
}

// A refusal says the same anywhere: how long it would take, how long it may, which limit it is, and why.
func TestRefusedAnywhere(t *testing.T) {
	name := reserve.WithName("daily")
	policies := []*reserve.Policy{
		reserve.Must(pace.TokenBucket(1, 2, name)), reserve.Must(window.Policy(2, 2*time.Second, name)),
	}
	for stand, make := range stands {
		for i, p := range policies {
			t.Run(fmt.Sprint(stand, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					by := make(p)
					_, err := reserve.Acquire(t.Context(), by, 2)
					require.NoError(t, err)
					_, err = by.ReserveWithin(t.Context(), 2, 500*time.Millisecond)
					requireRefused(t, err, 500*time.Millisecond, nil)
					_, err = by.ReserveWithin(t.Context(), 2, -7)
					requireRefused(t, err, 0, nil)
					ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
					defer cancel()
					_, err = reserve.Acquire(ctx, by, 2)
					requireRefused(t, err, 700*time.Millisecond, context.DeadlineExceeded)
				})
			})
		}
	}
}

func requireRefused(t *testing.T, err error, maxWait time.Duration, cause error) {
	var late *reserve.WaitError
	require.ErrorAs(t, err, &late)
	require.InDelta(t, 2*time.Second, late.Wait, 10)
	require.Equal(t, &reserve.WaitError{Wait: late.Wait, MaxWait: maxWait, Limit: "daily", Cause: cause}, late)
}

// What a warm-up can grant at once is what costs no more than a cold permit: the colder it is, the less.
func TestAtOnceOfAWarmUp(t *testing.T) {
	line := &smooth.LinearPrice{Base: 1e8, Threshold: 5, Slope: 4e7}
	c := &smooth.Curve{Rate: 10, Capacity: 10, Interval: 1e8, Refill: 1e-9, Line: line}
	require.Equal(t, []int{1, 2}, []int{c.AtOnce(10), c.AtOnce(0)})
}
