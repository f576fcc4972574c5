// Package peers calls pace and the limiters it is compared with in the same way, so
// that a difference between two numbers is a difference between two limiters.
package peers

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	juju "github.com/juju/ratelimit"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

// The limiters that tables and tests name.
const (
	Clock  = "time.Since"
	Bursty = "pace, bursty"
	WarmUp = "pace, warm-up"
	XTime  = "x/time/rate"
)

// An Op is one limiter doing one thing.
type Op struct {
	Limiter string
	// Start makes a new limiter and returns a loop that calls it n times. The loop,
	// not the call, is behind the function value, so that no peer pays for that. It
	// returns how many calls did not do what they should, which must be none.
	Start func() (loop func(n int) (failed int))
}

// Bench returns a benchmark of the op, its calls shared out among the goroutines. The
// time per call is that of the clock on the wall for b.N calls.
func (o Op) Bench(goroutines int) func(b *testing.B) {
	return func(b *testing.B) {
		loop := o.Start()
		failed := make([]int, goroutines)
		b.ReportAllocs()
		b.ResetTimer()
		var all sync.WaitGroup
		for i := range goroutines {
			n := b.N / goroutines
			if i < b.N%goroutines {
				n++
			}
			if goroutines == 1 {
				failed[i] = loop(n)
				break
			}
			all.Go(func() { failed[i] = loop(n) })
		}
		all.Wait()
		b.StopTimer()
		for _, f := range failed {
			if f > 0 {
				b.Fatalf("%s: %d of %d calls failed", o.Limiter, f, b.N)
			}
		}
	}
}

// Rates at which every call is granted, however fast they come. The peers count in
// whole nanoseconds, so theirs is one each.
const (
	fast   = 1e15
	fastNs = 1e9
)

// clockRead reads the clock as pace does: the least that a limiter can take.
var clockRead = Op{Clock, func() func(int) int {
	begin := time.Now()
	return func(n int) (failed int) {
		for range n {
			if time.Since(begin) < 0 {
				failed++
			}
		}
		return failed
	}
}}

// TryAcquire returns the limiters asked for a permit that is granted at once.
func TryAcquire() []Op {
	return []Op{
		clockRead,
		{Bursty, func() func(int) int { return tryAcquire(reserve.Must(pace.NewBursty(fast))) }},
		{"pace, bursty, WithBurst(0)", func() func(int) int {
			return tryAcquire(reserve.Must(pace.NewBursty(fast, pace.WithBurst(0))))
		}},
		{WarmUp, func() func(int) int { return tryAcquire(reserve.Must(warmup.New(fast, time.Second))) }},
		{XTime, func() func(int) int {
			l := rate.NewLimiter(fast, fastNs)
			return func(n int) (failed int) {
				for range n {
					if !l.Allow() {
						failed++
					}
				}
				return failed
			}
		}},
		{"uber-go/ratelimit", func() func(int) int {
			l := uber.New(fastNs)
			return func(n int) (failed int) {
				for range n {
					if l.Take().IsZero() {
						failed++
					}
				}
				return failed
			}
		}},
		{"juju/ratelimit", func() func(int) int {
			l := juju.NewBucketWithRate(fastNs, fastNs)
			return func(n int) (failed int) {
				for range n {
					if l.TakeAvailable(1) != 1 {
						failed++
					}
				}
				return failed
			}
		}},
		{"failsafe-go, smooth", func() func(int) int { return tryFailsafe(ratelimiter.NewSmooth[any](fastNs, time.Second)) }},
		{"failsafe-go, bursty", func() func(int) int { return tryFailsafe(ratelimiter.NewBursty[any](fastNs, time.Second)) }},
	}
}

// TryRefused returns the limiters asked for a permit that cannot be had now: their queue is
// longer than a benchmark takes.
func TryRefused() []Op {
	return []Op{
		clockRead,
		{Bursty, func() func(int) int { return tryRefused(reserve.Must(pace.NewBursty(slow))) }},
		{WarmUp, func() func(int) int { return tryRefused(reserve.Must(warmup.New(slow, time.Second))) }},
		{XTime, func() func(int) int {
			l := rate.NewLimiter(slow, 1)
			for range queue {
				l.Reserve()
			}
			return func(n int) (failed int) {
				for range n {
					if l.Allow() {
						failed++
					}
				}
				return failed
			}
		}},
		{"juju/ratelimit", func() func(int) int {
			l := juju.NewBucketWithRate(slow, 1)
			l.Take(queue)
			return func(n int) (failed int) {
				for range n {
					failed += int(l.TakeAvailable(1))
				}
				return failed
			}
		}},
		{"failsafe-go, smooth", func() func(int) int {
			l := ratelimiter.NewSmooth[any](slow, time.Second)
			l.ReservePermits(queue)
			return func(n int) (failed int) {
				for range n {
					if l.TryAcquirePermit() {
						failed++
					}
				}
				return failed
			}
		}},
	}
}

// tryRefused asks a limiter whose next permits are promised to another request.
func tryRefused(l *reserve.Limiter) func(int) int {
	r, err := l.Reserve(context.Background(), queue)
	return func(n int) (failed int) {
		if err != nil || r.Permits() != queue {
			return n
		}
		for range n {
			if l.TryAcquire(1) {
				failed++
			}
		}
		return failed
	}
}

func tryAcquire(l *reserve.Limiter) func(int) int {
	return func(n int) (failed int) {
		for range n {
			if !l.TryAcquire(1) {
				failed++
			}
		}
		return failed
	}
}

func tryFailsafe(l ratelimiter.RateLimiter[any]) func(int) int {
	return func(n int) (failed int) {
		for range n {
			if !l.TryAcquirePermit() {
				failed++
			}
		}
		return failed
	}
}

// Reserve returns the limiters asked when a permit can be had, which is now. Only
// pace and x/time/rate give a handle that can be cancelled.
func Reserve() []Op {
	return []Op{
		clockRead,
		{Bursty, func() func(int) int { return reserveOne(reserve.Must(pace.NewBursty(fast))) }},
		{WarmUp, func() func(int) int { return reserveOne(reserve.Must(warmup.New(fast, time.Second))) }},
		{XTime, func() func(int) int { return reserveXTime(rate.NewLimiter(fast, fastNs)) }},
		{"juju/ratelimit (no handle)", func() func(int) int {
			l := juju.NewBucketWithRate(fastNs, fastNs)
			return func(n int) (failed int) {
				for range n {
					if l.Take(1) < 0 {
						failed++
					}
				}
				return failed
			}
		}},
		{"failsafe-go, smooth (no handle)", func() func(int) int {
			l := ratelimiter.NewSmooth[any](fastNs, time.Second)
			return func(n int) (failed int) {
				for range n {
					if l.ReservePermit() < 0 {
						failed++
					}
				}
				return failed
			}
		}},
	}
}

// slow makes a queue out of the calls of a benchmark.
const slow = 1000

// ReserveInQueue returns the limiters asked when a permit can be had, each behind
// the one before it.
func ReserveInQueue() []Op {
	return []Op{
		clockRead,
		{Bursty, func() func(int) int { return reserveOne(reserve.Must(pace.NewBursty(slow))) }},
		{WarmUp, func() func(int) int { return reserveOne(reserve.Must(warmup.New(slow, time.Second))) }},
		{XTime, func() func(int) int { return reserveXTime(rate.NewLimiter(slow, 1)) }},
	}
}

// ReserveAndCancel returns the limiters asked for a permit behind a queue, and given it back.
func ReserveAndCancel() []Op {
	return []Op{
		clockRead,
		{Bursty, func() func(int) int { return reserveAndCancel(reserve.Must(pace.NewBursty(slow))) }},
		{WarmUp, func() func(int) int { return reserveAndCancel(reserve.Must(warmup.New(slow, time.Second))) }},
		{XTime, func() func(int) int {
			l := rate.NewLimiter(slow, 1)
			for range queue {
				l.Reserve()
			}
			return func(n int) (failed int) {
				for range n {
					r := l.Reserve()
					if !r.OK() {
						failed++
					}
					r.Cancel()
				}
				return failed
			}
		}},
	}
}

// queue is how many requests wait already: at slow, for longer than the benchmark takes.
const queue = 1_000_000

func reserveOne(l *reserve.Limiter) func(int) int {
	ctx := context.Background()
	return func(n int) (failed int) {
		for range n {
			r, err := l.Reserve(ctx, 1)
			if err != nil || r.Permits() != 1 {
				failed++
			}
		}
		return failed
	}
}

func reserveXTime(l *rate.Limiter) func(int) int {
	return func(n int) (failed int) {
		for range n {
			if r := l.Reserve(); !r.OK() {
				failed++
			}
		}
		return failed
	}
}

func reserveAndCancel(l *reserve.Limiter) func(int) int {
	ctx := context.Background()
	r, err := l.Reserve(ctx, queue)
	return func(n int) (failed int) {
		if err != nil || r.Permits() != queue {
			return n
		}
		for range n {
			r, err := l.Reserve(ctx, 1)
			if err != nil {
				failed++
			}
			r.Cancel()
		}
		return failed
	}
}
