//go:build unix

package wake

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var kinds = []struct {
	name  string
	sleep func(d time.Duration)
}{
	{"wake", func(d time.Duration) { sleep(context.Background(), d) }},
	{"timer", func(d time.Duration) { <-time.After(d) }},
	{"time.Sleep", time.Sleep},
}

// BenchmarkSleep reports how late sleepers wake (median and 99th of 100, in microseconds) and
// what a sleep costs in CPU time, beside a plain timer. ns/op says little: it is mostly the
// sleep.
//
//	go test -run - -bench Sleep -benchtime 2000x ./internal/wake
func BenchmarkSleep(b *testing.B) {
	for _, d := range []time.Duration{200 * time.Microsecond, time.Millisecond, 3300 * time.Microsecond} {
		for _, goroutines := range []int{1, 64} {
			for _, kind := range kinds {
				b.Run(fmt.Sprintf("d=%v/goroutines=%d/%s", d, goroutines, kind.name), func(b *testing.B) {
					b.ReportAllocs()
					benchmarkLateness(b, d, goroutines, kind.sleep)
				})
			}
		}
	}
}

// BenchmarkSleepAmongBusyGoroutines is the case that a descriptor alone is bad at: no P is ever without work. So none
// waits for the network poller, and a sleeper that only it can wake is 10 ms late.
func BenchmarkSleepAmongBusyGoroutines(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			var stop atomic.Bool
			var busy sync.WaitGroup
			for range 2 * runtime.GOMAXPROCS(0) {
				busy.Go(func() {
					for !stop.Load() {
						for start := time.Now(); time.Since(start) < 3*time.Microsecond; {
						}
						runtime.Gosched()
					}
				})
			}
			benchmarkLateness(b, 200*time.Microsecond, 1, kind.sleep)
			stop.Store(true)
			busy.Wait()
		})
	}
}

func benchmarkLateness(b *testing.B, d time.Duration, goroutines int, sleep func(time.Duration)) {
	late := make([]time.Duration, b.N)
	var sleepers sync.WaitGroup
	before := cpuTime(b)
	b.ResetTimer()
	for g := range goroutines {
		sleepers.Go(func() {
			for i := g; i < b.N; i += goroutines {
				start := time.Now()
				sleep(d)
				late[i] = time.Since(start) - d
			}
		})
	}
	sleepers.Wait()
	b.StopTimer()
	cpu := cpuTime(b) - before
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Nanoseconds())/1e3, "p50-late-us")
	b.ReportMetric(float64(late[len(late)*99/100].Nanoseconds())/1e3, "p99-late-us")
	b.ReportMetric(float64(cpu.Nanoseconds())/1e3/float64(b.N), "cpu-us/op")
}

// cpuTime is what the process has used so far, in user and in kernel mode.
func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
