package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/cpu"
	"github.com/nextfree/pace/reserve"
)

// Every call comes to used permits, at so many permits a second that callsPerSecond go. Those who settle
// have reserved twice as much, and settle takes later. The store has room for what is out meanwhile.
const (
	callsPerSecond = 1000
	used           = 2
	takes          = 20 * time.Millisecond
)

// A result is what one run measured. Times are in microseconds.
type result struct {
	settlements, calls float64 // per second
	cpu                float64 // seconds per second
	p50, p99           float64 // by how much a call went after its time
}

// measure lets the goroutines call until the time is over. The first quarter does not count: until
// something was settled, the queue is longer than it will be.
func measure(ctx context.Context, settle bool, duration time.Duration, goroutines int) (result, error) {
	l, err := pace.NewBursty(used * callsPerSecond)
	if err != nil {
		return result{}, err
	}
	reserves := used
	if settle {
		reserves = 2 * used
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := &marks{}
	runtime.GC()
	var all sync.WaitGroup
	for range goroutines + int(callsPerSecond*takes.Seconds()) { // so many take their time
		all.Go(func() {
			for call(ctx, l, reserves, m) {
			}
		})
	}
	sleep(ctx, duration/4)
	m.reset()
	before, begin := cpu.Time(), time.Now()
	sleep(ctx, duration-duration/4)
	took := time.Since(begin)
	cpuTime := cpu.Time() - before
	err = context.Cause(ctx) // of somebody else's
	late := m.reset()
	stop()
	all.Wait()
	if err != nil {
		return result{}, err
	}
	if len(late) == 0 {
		return result{}, fmt.Errorf("no call went in %v", took)
	}
	slices.Sort(late)
	r := result{
		calls: float64(len(late)) / took.Seconds(),
		cpu:   cpuTime.Seconds() / took.Seconds(),
		p50:   microseconds(late[len(late)/2]),
		p99:   microseconds(late[len(late)*99/100]),
	}
	if settle {
		r.settlements = r.calls
	}
	return r, nil
}

// call makes one call, and reports whether it went.
func call(ctx context.Context, l *reserve.Limiter, reserves int, m *marks) bool {
	r, err := l.Reserve(ctx, reserves)
	if err != nil || r.Wait(ctx) != nil {
		return false
	}
	now := time.Now()
	m.add(now.Sub(r.At()))
	time.Sleep(takes)
	if reserves != used {
		r.Settle(used)
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// marks are how late calls went.
type marks struct {
	mu   sync.Mutex
	late []time.Duration
}

func (m *marks) add(late time.Duration) {
	m.mu.Lock()
	m.late = append(m.late, late)
	m.mu.Unlock()
}

func (m *marks) reset() (late []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	late, m.late = m.late, make([]time.Duration, 0, 1<<16)
	return late
}

// medians returns the median of each number.
func medians(rs []result) result {
	of := func(get func(result) float64) float64 {
		var values []float64
		for _, r := range rs {
			values = append(values, get(r))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return result{
		settlements: of(func(r result) float64 { return r.settlements }),
		calls:       of(func(r result) float64 { return r.calls }),
		cpu:         of(func(r result) float64 { return r.cpu }),
		p50:         of(func(r result) float64 { return r.p50 }),
		p99:         of(func(r result) float64 { return r.p99 }),
	}
}

func (r result) row() []string {
	return []string{
		fmt.Sprintf("%.0f", r.settlements),
		fmt.Sprintf("%.0f", r.calls),
		fmt.Sprintf("%.1f", 100*r.cpu),
		fmt.Sprintf("%.1f", 1e6*r.cpu/r.calls),
		fmt.Sprintf("%.1f", r.p50),
		fmt.Sprintf("%.1f", r.p99),
	}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
