package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// A load is a number of callers, each of which reserves permits, waits for them, takes
// some time, settles at what the call used, and begins again.
type load struct {
	saved    time.Duration // how much idle time is saved up, as permits
	callers  int
	reserves int                 // permits
	actual   span[int]           // at which it settles
	takes    span[time.Duration] // from when it goes until it settles
}

// A span is what is drawn from, evenly.
type span[T int | time.Duration] struct{ from, to T }

func (s span[T]) draw(random *rand.Rand) T { return s.from + T(random.Int64N(int64(s.to-s.from)+1)) }

// permitsPerSecond is the rate of every limiter here.
const permitsPerSecond = 1000

// store returns how many permits are saved up at most.
func (l load) store() float64 { return permitsPerSecond * l.saved.Seconds() }

// A limiter is asked at times of the simulation, counted from its begin, which never run back.
type limiter interface {
	reserve(now time.Duration, permits int) promise
}

// A promise is what a limiter answers.
type promise interface {
	// at returns when the permits may be used, as far as is known now.
	at(now time.Duration) time.Duration
	settle(now time.Duration, actual int)
}

// A simulation runs loads.
type simulation struct {
	warmUp, counted time.Duration
	seed            uint64
}

// An outcome is what a load made of a limiter, of the calls that went after the warm-up.
type outcome struct {
	used  float64 // permits per second
	worst float64 // permits: see beyond
}

// A call is one that went.
type call struct {
	at     time.Duration
	amount int // as far as is known: what was reserved, until it settles
}

// A caller waits for its promise, or makes its call and will settle.
type caller struct {
	promise promise
	call    int           // its index among the calls that went
	until   time.Duration // when it settles
	actual  int           // at how many permits
}

// run steps from event to event, so that no time is rounded. After each event all waiting callers ask for their times
// again, since a promise may have moved up. Of events at the same moment, calls go before calls settle, in the order
// in which they asked.
func (s simulation) run(l load, by limiter) (o outcome) {
	random := rand.New(rand.NewPCG(s.seed, 0))
	var gone []call
	var waiting, taking []*caller
	for range l.callers {
		waiting = append(waiting, &caller{promise: by.reserve(0, l.reserves)})
	}
	for now := time.Duration(0); ; {
		next := time.Duration(math.MaxInt64)
		going, settling := -1, -1
		for i, c := range waiting {
			if at := max(now, c.promise.at(now)); at < next {
				next, going = at, i
			}
		}
		for i, c := range taking {
			if c.until < next {
				next, going, settling = c.until, -1, i
			}
		}
		if now = next; now > s.warmUp+s.counted {
			o.used /= s.counted.Seconds()
			return o
		}
		if going >= 0 {
			c := waiting[going]
			c.call, c.until, c.actual = len(gone), now+l.takes.draw(random), l.actual.draw(random)
			gone = append(gone, call{now, l.reserves})
			waiting, taking = slices.Delete(waiting, going, going+1), append(taking, c)
			if now > s.warmUp {
				o.used += float64(c.actual)
				o.worst = max(o.worst, beyond(gone))
			}
			continue
		}
		c := taking[settling]
		c.promise.settle(now, c.actual)
		gone[c.call].amount = c.actual
		taking = slices.Delete(taking, settling, settling+1)
		waiting = append(waiting, &caller{promise: by.reserve(now, l.reserves)})
	}
}

// beyond returns by how many permits the calls exceed the rate in the worst stretch of time that ends
// when the last of them goes: the sum of what they took and have not given back by then, without
// the last one's own, less what the rate brings meanwhile. The store of a limiter is allowed.
func beyond(gone []call) (worst float64) {
	last := len(gone) - 1
	sum := 0
	for i := last - 1; i >= 0; i-- {
		sum += gone[i].amount
		worst = max(worst, float64(sum)-permitsPerSecond*(gone[last].at-gone[i].at).Seconds())
	}
	return worst
}
