package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

// live returns how many bytes are in use.
func live() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// measureCosts returns a row of the first table.
func measureCosts(p peer, names, others []string) []string {
	n := float64(len(names))
	before := live()
	take, stop := p.new(0.001, 1000, len(names))
	insert := timed(1, len(names), func(i int) { take(names[i]) })
	alive := (live() - before) / n

	order := rand.New(rand.NewPCG(1, 2)).Perm(len(names))
	anyKey := func(i int) { take(names[order[i%len(order)]]) }
	hit, hit8 := timed(1, len(names), anyKey), timed(8, len(names), anyKey)
	oneKey := func(int) { take(names[0]) }
	same, same8 := timed(1, 2_000_000, oneKey), timed(8, 2_000_000, oneKey)
	allocations := allocs(func() { take(names[1]) })
	stop()
	runtime.KeepAlive(take)
	take = nil

	before = live()
	take, stop = p.new(10, 10, len(names)+1)
	for _, key := range others {
		take(key)
	}
	// All keys are full a fraction of a second later. The calls that follow sweep, or are made while a goroutine of the
	// limiter sweeps.
	var longest time.Duration
	for begin := time.Now(); time.Since(begin) < 4*time.Second; {
		before := time.Now()
		take("another")
		longest = max(longest, time.Since(before))
	}
	idle := (live() - before) / n
	stop()
	runtime.KeepAlive(take)

	return []string{p.name, fmt.Sprintf("%.0f", alive), fmt.Sprintf("%.1f", max(0, idle)), ns(insert),
		ns(hit), ns(hit8), ns(same), ns(same8), fmt.Sprintf("%.0f", allocations),
		fmt.Sprintf("%.1f", longest.Seconds()*1000)}
}

// timed returns the nanoseconds per call, of n calls by some goroutines: time on
// the clock, divided by all calls. It takes 40 rounds, and the time of the tenth best: other
// programs on the machine make rounds longer, never shorter.
func timed(goroutines, n int, call func(i int)) float64 {
	const rounds = 40
	times := make([]float64, rounds)
	n /= rounds * goroutines
	for round := range rounds {
		var all sync.WaitGroup
		begin := time.Now()
		for g := range goroutines {
			from := (round*goroutines + g) * n
			all.Go(func() {
				for i := range n {
					call(from + i)
				}
			})
		}
		all.Wait()
		times[round] = float64(time.Since(begin)) / float64(n*goroutines)
	}
	slices.Sort(times)
	return times[rounds/4]
}

func allocs(f func()) float64 {
	var before, after runtime.MemStats
	f()
	runtime.ReadMemStats(&before)
	for range 10_000 {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs - before.Mallocs) / 10_000)
}

func ns(t float64) string { return fmt.Sprintf("%.0f", t) }

// measureFlood returns a row of the second table.
func measureFlood(p peer, names []string) []string {
	goroutines := runtime.NumGoroutine()
	before := live()
	take, stop := p.new(0.001, 10, len(names)/10)
	goroutines = runtime.NumGoroutine() - goroutines
	for range 100 {
		take("debtor")
	}
	for _, key := range names {
		take(key)
		take(key) // so that the limiter has to remember this key, too
	}
	debtor := "refused"
	if take("debtor") {
		debtor = "forgiven"
	}
	room := "no limit"
	if p.bounded {
		room = fmt.Sprint(len(names)/10, " keys")
	}
	held := (live() - before) / float64(len(names))
	stop()
	runtime.KeepAlive(take)
	return []string{p.name, fmt.Sprint(goroutines), room, fmt.Sprintf("%.0f", held), debtor}
}
