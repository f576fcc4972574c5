package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/cpu"
	"github.com/nextfree/pace/reserve"
)

// A sleeper is a limiter whose callers sleep.
type sleeper struct {
	name string
	pace bool
	new  func() bed
}

// A bed is a limiter, on the real clock, that has nothing to give for now.
type bed struct {
	wait func(ctx context.Context) error
	next func() time.Duration // the wait of one permit
}

var sleepers = []sleeper{
	{"pace, WithBurst(0)", true, func() bed {
		l := reserve.Must(pace.NewBursty(permitsPerSecond, pace.WithBurst(0)))
		return bed{
			wait: l.Wait,
			next: func() time.Duration {
				r := reserve.Must(l.Reserve(context.Background(), 1))
				return r.Delay()
			},
		}
	}},
	{"x/time/rate, burst 1", false, func() bed {
		l := rate.NewLimiter(permitsPerSecond, 1)
		return bed{
			wait: l.Wait,
			next: func() time.Duration { return l.Reserve().Delay() },
		}
	}},
}

// A result says what it took, in processor time of the whole process.
type result struct{ asking, leaving, next time.Duration }

// measure returns medians.
func measure(ctx context.Context, s sleeper, goroutines, rounds int) (result, error) {
	var asking, leaving, next []time.Duration
	for range rounds {
		if ctx.Err() != nil {
			return result{}, context.Cause(ctx)
		}
		r, err := giveUp(ctx, s.new(), goroutines)
		if err != nil {
			return result{}, err
		}
		asking, leaving, next = append(asking, r.asking), append(leaving, r.leaving), append(next, r.next)
	}
	return result{median(asking), median(leaving), median(next)}, nil
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// giveUp lets so many goroutines wait until all of them do, and then give up in random order.
func giveUp(ctx context.Context, b bed, goroutines int) (r result, err error) {
	var all sync.WaitGroup
	cancels := make([]context.CancelFunc, goroutines)
	errs := make([]error, goroutines)
	runtime.GC()
	before := cpu.Time()
	var begun atomic.Int64
	for i := range goroutines {
		var caller context.Context
		caller, cancels[i] = context.WithCancel(ctx)
		all.Go(func() {
			begun.Add(1)
			errs[i] = b.wait(caller)
		})
	}
	for begun.Load() < int64(goroutines) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // until the last of them sleeps
	r.asking = cpu.Time() - before

	before = cpu.Time()
	for _, i := range rand.Perm(goroutines) {
		cancels[i]()
	}
	all.Wait()
	r.leaving = cpu.Time() - before
	r.next = b.next()
	for _, e := range errs {
		if e != nil && !errors.Is(e, context.Canceled) {
			err = errors.Join(err, e)
		}
	}
	return r, errors.Join(err, context.Cause(ctx))
}
