package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/jonboulle/clockwork"
	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// queues says how many callers there are before the next one.
var queues = []int{100, 1000}

// An order is that in which callers leave, and the permits that each has asked for.
type order struct {
	name  string
	sizes func(n int, random *rand.Rand) []int
	leave func(n int, random *rand.Rand) []int
}

var orders = []order{
	{"oldest first", ones, func(n int, _ *rand.Rand) []int { return upTo(n) }},
	{"newest first", ones, func(n int, _ *rand.Rand) []int {
		is := upTo(n)
		slices.Reverse(is)
		return is
	}},
	{"random", ones, func(n int, random *rand.Rand) []int { return random.Perm(n) }},
	{"random, 1 to 5 each", func(n int, random *rand.Rand) (sizes []int) {
		for range n {
			sizes = append(sizes, 1+random.IntN(largest))
		}
		return sizes
	}, func(n int, random *rand.Rand) []int { return random.Perm(n) }},
}

// largest is the size of the largest request. x/time/rate refuses requests above its burst.
const largest = 5

func ones(n int, _ *rand.Rand) []int { return slices.Repeat([]int{1}, n) }

func upTo(n int) (is []int) {
	for i := range n {
		is = append(is, i)
	}
	return is
}

// A contender is a limiter from which nothing can be had before an interval is over.
type contender struct {
	name string
	new  func() queue
}

// A queue is what callers ask. Each gets a function that gives up.
type queue struct {
	ask  func(permits int) (giveUp func())
	next func() time.Duration // the wait of one permit
}

// nextWait returns how long the next caller waits after n have asked, and left in that order.
func nextWait(c contender, n int, o order) time.Duration {
	random := rand.New(rand.NewPCG(uint64(n), 0))
	q := c.new()
	var leave []func()
	for _, permits := range o.sizes(n, random) {
		leave = append(leave, q.ask(permits))
	}
	for _, i := range o.leave(n, random) {
		leave[i]()
	}
	return q.next()
}

var contenders = []contender{
	{"pace, WithBurst(0)", func() queue {
		l := reserve.Must(pace.NewBursty(permitsPerSecond, pace.WithBurst(0), reserve.WithClock(clockwork.NewFakeClock())))
		return paceQueue(l, 1)
	}},
	{"pace, a token bucket of 5", func() queue {
		l := reserve.Must(pace.NewBursty(permitsPerSecond, pace.WithCapacity(largest),
			reserve.WithStored(largest), reserve.PayUpfront(), reserve.WithClock(clockwork.NewFakeClock())))
		return paceQueue(l, largest)
	}},
	{"x/time/rate, burst 5", func() queue {
		l, now := rate.NewLimiter(permitsPerSecond, largest), time.Unix(0, 0)
		l.ReserveN(now, largest)
		return queue{
			ask: func(permits int) func() {
				r := l.ReserveN(now, permits)
				return func() { r.CancelAt(now) }
			},
			next: func() time.Duration { return l.ReserveN(now, 1).DelayFrom(now) },
		}
	}},
	// It has no handle: giving up is to end the context, and gives nothing back, in whichever order.
	{"failsafe-go, smooth", func() queue {
		l := ratelimiter.NewSmooth[any](permitsPerSecond, time.Second)
		l.ReservePermit()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		return queue{
			ask: func(permits int) func() {
				return func() { _ = l.AcquirePermits(ended, uint(permits)) } // it asks first, then looks at the context
			},
			next: l.ReservePermit,
		}
	}},
}

// paceQueue empties the limiter.
func paceQueue(l *reserve.Limiter, permits int) queue {
	ctx := context.Background()
	ask := func(permits int) *reserve.Reservation {
		r := reserve.Must(l.Reserve(ctx, permits))
		return &r
	}
	ask(permits)
	return queue{
		ask:  func(permits int) func() { return ask(permits).Cancel },
		next: func() time.Duration { return ask(1).Delay() },
	}
}
