package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/goredis"
)

// What is asked of a rate that processes share.
const (
	processes = 4 // each a limiter with a client of its own, in this program
	callers   = 16
	rate      = 2_000
)

// evenness has all callers saturate one rate, and says how evenly it is kept.
func evenness(addr string, length time.Duration) error {
	policy := reserve.Must(pace.Bursty(rate, pace.WithBurst(0)))
	ctx, cancel := context.WithTimeout(context.Background(), length+time.Second)
	defer cancel()
	granted := make([][]time.Time, processes*callers)
	var all sync.WaitGroup
	for p := range processes {
		c := connect(addr)
		defer c.Close()
		l, err := shared.New(goredis.Client(c), "even", policy, shared.WithTimeout(time.Second))
		if err != nil {
			return err
		}
		for i := range callers {
			times := &granted[p*callers+i]
			all.Go(func() {
				for {
					if _, err := l.Acquire(ctx, 1); err != nil {
						return // the time is over
					}
					*times = append(*times, time.Now())
				}
			})
		}
	}
	all.Wait()
	times := slices.Concat(granted...)
	slices.SortFunc(times, time.Time.Compare)
	if len(times) < rate/2 {
		return fmt.Errorf("only %d permits were granted in %v at %d/s", len(times), length, rate)
	}
	fmt.Printf("\n%d limiters with clients of their own, %d goroutines each, on one key at %d/s\n",
		processes, callers, rate)
	for _, window := range []time.Duration{100 * time.Millisecond, time.Second} {
		windows(times, times[0].Add(time.Second/2), times[0].Add(length), window)
	}
	return nil
}

// windows prints how many permits were granted in each window between two times, as far as that is off the rate.
func windows(times []time.Time, begin, end time.Time, window time.Duration) {
	var off []float64 // in percent
	sum := 0.0
	for from := begin; !from.Add(window).After(end); from = from.Add(window) {
		first, _ := slices.BinarySearchFunc(times, from, time.Time.Compare)
		next, _ := slices.BinarySearchFunc(times, from.Add(window), time.Time.Compare)
		off = append(off, 100*(float64(next-first)/(rate*window.Seconds())-1))
		sum += off[len(off)-1]
	}
	if len(off) > 0 {
		fmt.Printf("  over %v: mean %+.3f %%, least %+.2f %%, most %+.2f %% off the rate (%d windows)\n", window,
			sum/float64(len(off)), slices.Min(off), slices.Max(off), len(off))
	}
}
