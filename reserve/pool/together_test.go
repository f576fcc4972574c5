package pool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/pool"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/window"
)

func rounds(short, long int) uint64 {
	if os.Getenv("PACE_LONG") != "" {
		return uint64(long)
	}
	return uint64(short)
}

// A composition is queues in front of limits in front of limits, by chance.
type composition struct {
	random *rand.Rand
	scale  float64 // of rates
	base   []*reserve.Limiter
	fails  bool
	queues []*fair.Queue
	pools  []*pool.Pool[int]
}

var classes = []fair.Class{{Name: "p", Priority: 1, MaxAge: 500 * time.Millisecond}, {Name: "b"}, {Name: "c", Weight: 3}}

func compose(random *rand.Rand, scale float64, fails bool) *composition {
	c := &composition{random: random, scale: scale, fails: fails}
	for range 3 {
		rate := scale * (1 + 9*random.Float64())
		c.base = append(c.base, []*reserve.Limiter{
			reserve.Must(pace.NewBursty(rate)), even(rate), reserve.Must(pace.NewTokenBucket(rate, 8)),
			reserve.Must(window.New(8, time.Duration(8/rate*float64(time.Second)))),
		}[random.IntN(4)])
	}
	for range 2 {
		c.queues = append(c.queues, c.queue(1))
		c.pools = append(c.pools, c.pool(1))
	}
	return c
}

// limit returns some limit, with at most so many queues in it.
func (c *composition) limit(depth int) reserve.Reserver {
	a, b := c.base[c.random.IntN(3)], c.base[c.random.IntN(3)]
	switch kind := c.random.IntN(9); {
	case kind == 0:
		return reserve.All(a, b) // maybe the same
	case kind == 1:
		policy := func(string) (*reserve.Policy, error) { return pace.Bursty(5 * c.scale) }
		return keyed.New(policy).For("k")
	case kind == 2:
		takes := time.Duration(float64(c.random.IntN(100)) / c.scale * float64(time.Millisecond))
		return newCustom(a, takes, nil)
	case kind == 3 && c.fails:
		return newCustom(a, time.Millisecond, func(call int) error {
			if call%3 == 0 {
				return errors.New("a timeout")
			}
			return nil
		})
	case kind == 4:
		return reserve.Must(shared.NewIn(shared.Memory(), "x", reserve.Must(pace.Bursty(5*c.scale))))
	case kind == 5 && depth > 0:
		return c.queue(depth - 1).Class("b")
	case kind == 6 && depth > 0:
		return c.pool(depth - 1).Reserver()
	case kind == 7:
		return reserve.All(a, c.limit(0))
	}
	return a
}

func (c *composition) queue(depth int) *fair.Queue {
	list := classes
	if c.random.IntN(2) == 0 {
		list = append([]fair.Class{}, classes...)
		list[1].Limit = even(4 * c.scale)
	}
	return reserve.Must(fair.New(c.limit(depth), list, fair.WithTenants(nil)))
}

func (c *composition) pool(depth int) *pool.Pool[int] {
	var list []pool.Member[int]
	for i := range 1 + c.random.IntN(3) {
		list = append(list, pool.Member[int]{Value: i, By: c.limit(depth), Tier: c.random.IntN(2)})
	}
	return reserve.Must(pool.New(list, pool.WithSlack(time.Duration(c.random.IntN(3))*time.Millisecond)))
}

// act does something by chance, and returns what it has taken.
func (c *composition) act(ctx context.Context, random *rand.Rand) {
	ctx = fair.With(ctx, classes[random.IntN(3)].Name, []string{"", "x", "y"}[random.IntN(3)])
	q, p, n := c.queues[random.IntN(2)], c.pools[random.IntN(2)], 1+random.IntN(4)
	unit := time.Duration(float64(time.Second) / c.scale)
	switch random.IntN(8) {
	case 0:
		_, _ = q.Acquire(ctx, n)
	case 1, 2:
		if r, err := q.ReserveWithin(ctx, n, time.Duration(random.Int64N(int64(2*unit)))); err == nil {
			if _ = r.Delay(); random.IntN(3) == 0 {
				go r.Settle(random.IntN(3))
			}
			_ = r.Wait(ctx)
			r.Settle(random.IntN(5))
		}
	case 3:
		if l, err := p.Acquire(ctx, n); err == nil && random.IntN(2) == 0 {
			l.Cancel()
		}
	case 4:
		if l, err := p.Sticky("k").ReserveWithin(ctx, n, unit); err == nil {
			_, _ = l.Wait(ctx), l.Member()
		}
	case 5:
		_, _ = c.base[random.IntN(3)].Acquire(ctx, n)
	case 6:
		p.Drop(0)
		time.AfterFunc(unit/8, func() { p.Resume(0) })
	default:
		l := c.base[random.IntN(3)]
		switch random.IntN(3) {
		case 0:
			l.PauseUntil(time.Now().Add(time.Duration(random.Int64N(int64(unit)))))
		case 1:
			l.Resume()
		default:
			_ = l.Retime(c.scale * (1 + 9*random.Float64()))
		}
	}
}

// quiet requires that nothing waits, and that everything can be had afterwards.
func (c *composition) quiet(t *testing.T, name string) {
	for _, q := range c.queues {
		for _, class := range q.Snapshot().Classes {
			require.Zero(t, class.Waiting, name)
		}
	}
	for _, p := range c.pools {
		require.Zero(t, p.Waiting(), name)
	}
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	for _, q := range c.queues {
		_, err := q.Acquire(ctx, 1)
		require.False(t, errors.Is(err, context.DeadlineExceeded), "%s: %v", name, err)
	}
	for _, p := range c.pools {
		err := acquire(ctx, p)
		require.False(t, errors.Is(err, context.DeadlineExceeded), "%s: %v", name, err)
	}
}

// Whatever stands in front of what, each caller comes back by its deadline, and in the end everything can be had.
func TestCompositions(t *testing.T) {
	for seed := range rounds(60, 2000) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 5))
			c := compose(random, 1, seed%2 == 0)
			var all sync.WaitGroup
			for w := range 12 {
				own := rand.New(rand.NewPCG(seed, uint64(w)))
				all.Go(func() {
					for range 12 {
						time.Sleep(time.Duration(own.IntN(800)) * time.Millisecond)
						timeout := time.Duration(1+own.IntN(5000)) * time.Millisecond
						ctx, cancel := context.WithTimeout(background, timeout)
						begin := time.Now()
						c.act(ctx, own)
						require.LessOrEqual(t, time.Since(begin), timeout, "seed %d", seed)
						cancel()
					}
				})
			}
			all.Wait()
			time.Sleep(time.Minute)
			c.quiet(t, fmt.Sprint("seed ", seed))
			time.Sleep(time.Hour)
		})
	}
}

// The same for real, on one, two and eight processors.
func TestCompositionsForReal(t *testing.T) {
	for _, processors := range []int{1, 2, 8} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		for seed := range rounds(2, 24) {
			c := compose(rand.New(rand.NewPCG(seed, 6)), 300, seed%2 == 0)
			end := time.Now().Add(200 * time.Millisecond)
			var all sync.WaitGroup
			for w := range 16 {
				all.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(w)))
					for time.Now().Before(end) {
						ctx, cancel := context.WithTimeout(background, time.Duration(1+random.IntN(20))*time.Millisecond)
						c.act(ctx, random)
						cancel()
					}
				})
			}
			done := make(chan struct{})
			go func() { all.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(30 * time.Second):
				stacks := make([]byte, 1<<20)
				t.Fatalf("seed %d: callers hang\n%s", seed, stacks[:runtime.Stack(stacks, true)])
			}
			time.Sleep(10 * time.Millisecond)
			c.quiet(t, fmt.Sprint("seed ", seed))
		}
	}
}
