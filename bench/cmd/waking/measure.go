package main

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/cpu"
	"github.com/nextfree/pace/reserve"
)

// A result is what one limiter did, with times in microseconds.
type result struct {
	Reached  float64 // permits a second
	P50, P99 float64 // of the spacing error
	CPU      float64 // processor time per call
}

type limiter interface{ Wait(context.Context) error }

// limiters make a limiter by its name.
var limiters = map[string]func(perSecond int) limiter{
	"pace": func(perSecond int) limiter {
		return reserve.Must(pace.NewBursty(float64(perSecond), pace.WithBurst(0)))
	},
	"xtime": func(perSecond int) limiter { return rate.NewLimiter(rate.Limit(perSecond), 1) },
}

// measure has goroutines wait for one permit after the other. The first tenth does not count.
func measure(name string, perSecond, goroutines int, duration time.Duration) result {
	l := limiters[name](perSecond)
	calls := make([][]time.Duration, goroutines)
	for i := range calls {
		calls[i] = make([]time.Duration, 0, 2*perSecond*int(1+duration/time.Second)/goroutines+100)
	}
	ctx, cancel := context.WithCancel(context.Background())
	runtime.GC()
	var all sync.WaitGroup
	before, begin := cpu.Time(), time.Now()
	for i := range calls {
		all.Go(func() {
			for l.Wait(ctx) == nil {
				calls[i] = append(calls[i], time.Since(begin))
			}
		})
	}
	time.Sleep(duration)
	used := cpu.Time() - before
	cancel()
	all.Wait()

	went := slices.Concat(calls...)
	slices.Sort(went)
	end, _ := slices.BinarySearch(went, duration)
	first, _ := slices.BinarySearch(went, duration/10)
	interval := time.Second / time.Duration(perSecond)
	var off []time.Duration
	for i := first + 1; i < end; i++ {
		off = append(off, (went[i] - went[i-1] - interval).Abs())
	}
	slices.Sort(off)
	if len(off) == 0 {
		return result{}
	}
	quantile := func(q float64) float64 {
		return float64(off[max(0, int(math.Ceil(q*float64(len(off))))-1)]) / 1e3
	}
	return result{
		Reached: float64(len(off)) / (went[end-1] - went[first]).Seconds(),
		P50:     quantile(0.5), P99: quantile(0.99), CPU: float64(used) / 1e3 / float64(end),
	}
}
