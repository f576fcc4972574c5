package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/cpu"
	"github.com/nextfree/pace/reserve"
)

// A limiter makes a function that waits for a permit.
type limiter struct {
	name string
	new  func(perSecond int) (wait func())
}

// Indexes into limiters.
const (
	paceStrict = iota
	paceBursty
	xtimeStrict
	xtimeBursty
	uberDefault
)

// Pace counts what is stored, and x/time/rate what may go at one moment: one more,
// because pace's next permit after the stored ones is prepaid. So these are pairs.
var limiters = []limiter{
	{"pace, WithBurst(0)", func(perSecond int) func() {
		return waitPace(reserve.Must(pace.NewBursty(float64(perSecond), pace.WithBurst(0))))
	}},
	{"pace, WithCapacity(9)", func(perSecond int) func() {
		return waitPace(reserve.Must(pace.NewBursty(float64(perSecond), pace.WithCapacity(9))))
	}},
	{"x/time/rate, burst 1", func(perSecond int) func() { return waitXTime(rate.NewLimiter(rate.Limit(perSecond), 1)) }},
	{"x/time/rate, burst 10", func(perSecond int) func() { return waitXTime(rate.NewLimiter(rate.Limit(perSecond), 10)) }},
	{"uber-go/ratelimit", func(perSecond int) func() {
		l := uber.New(perSecond)
		return func() { l.Take() }
	}},
}

func waitPace(l *reserve.Limiter) func() {
	ctx := context.Background()
	return func() { reserve.Must(0, l.Wait(ctx)) }
}

func waitXTime(l *rate.Limiter) func() {
	ctx := context.Background()
	return func() { reserve.Must(0, l.Wait(ctx)) }
}

// A result is what one limiter did at one setting, in all rounds.
type result struct {
	name     string
	interval time.Duration
	errors   []time.Duration // of the time between calls, sorted
	counted  time.Duration   // the time in which those calls were made
	calls    int             // all of them
	cpu      time.Duration   // that all calls took
}

// measure runs all limiters in turn, round after round.
func measure(ctx context.Context, s setting, duration time.Duration, rounds int) ([]result, error) {
	results := make([]result, len(limiters))
	for i, l := range limiters {
		results[i] = result{name: l.name, interval: time.Second / time.Duration(s.perSecond)}
	}
	for range rounds {
		for i, l := range limiters {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			results[i].add(s, l, duration)
		}
	}
	for _, r := range results {
		slices.Sort(r.errors)
	}
	return results, nil
}

// add runs the limiter once, and adds what it did.
func (r *result) add(s setting, l limiter, duration time.Duration) {
	wait := l.new(s.perSecond)
	grants := make([][]time.Duration, s.goroutines)
	for i := range grants { // so that none has to grow
		grants[i] = make([]time.Duration, 0, 2*s.perSecond*int(1+duration/time.Second)/s.goroutines+100)
	}
	runtime.GC()
	before, begin := cpu.Time(), time.Now()
	var all sync.WaitGroup
	for i := range grants {
		all.Go(func() {
			for now := time.Duration(0); now < duration; grants[i] = append(grants[i], now) {
				wait()
				now = time.Since(begin)
			}
		})
	}
	all.Wait()
	r.cpu += cpu.Time() - before

	calls := slices.Concat(grants...)
	slices.Sort(calls)
	r.calls += len(calls)
	from, _ := slices.BinarySearch(calls, duration/10)
	to, _ := slices.BinarySearch(calls, duration)
	calls = calls[from:to]
	for i := 1; i < len(calls); i++ {
		r.errors = append(r.errors, (calls[i] - calls[i-1] - r.interval).Abs())
	}
	if len(calls) > 1 {
		r.counted += calls[len(calls)-1] - calls[0]
	}
}

func (r result) reached() float64 { return float64(len(r.errors)) / r.counted.Seconds() }

// offBy returns by how many percent the rate was missed.
func (r result) offBy() float64 { return 100 * (r.reached()*r.interval.Seconds() - 1) }

func (r result) p50() float64        { return r.quantile(0.50) }
func (r result) p99() float64        { return r.quantile(0.99) }
func (r result) cpuPerCall() float64 { return microseconds(r.cpu) / float64(r.calls) }

// quantile returns the spacing error in microseconds that a fraction q does not exceed.
func (r result) quantile(q float64) float64 {
	if len(r.errors) == 0 {
		return math.NaN()
	}
	return microseconds(r.errors[max(0, int(math.Ceil(q*float64(len(r.errors))))-1)])
}

func (r result) row(s setting) []string {
	return []string{
		fmt.Sprint(s.perSecond),
		fmt.Sprint(s.goroutines),
		r.name,
		fmt.Sprintf("%.0f", r.reached()),
		fmt.Sprintf("%+.2f", r.offBy()),
		fmt.Sprintf("%.1f", r.p50()),
		fmt.Sprintf("%.1f", r.p99()),
		fmt.Sprintf("%.1f", r.cpuPerCall()),
	}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
