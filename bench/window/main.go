// Command window counts how many calls limiters of one rate, 100 a minute, let through
// in the fullest of all minutes, however it is cut. A client that never stops asking
// finds each of them idle and makes calls for five minutes, on a fake clock.
//
//	go run ./window
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/jonboulle/clockwork"
	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

const (
	calls = 100
	per   = time.Minute
	asked = 5 * per
	every = 10 * time.Millisecond
)

func main() {
	var rows [][]string
	for _, c := range candidates {
		granted := run(c.limiter)
		most := fullest(granted)
		rows = append(rows, []string{
			c.name, fmt.Sprint(atOnce(granted)), fmt.Sprint(most), fmt.Sprintf("%+d", most-calls),
			fmt.Sprintf("%.1f", float64(len(granted))*float64(per)/float64(asked)),
		})
	}
	fmt.Printf("%d calls a minute allowed, a client that asks every %v for %v, all limiters idle before\n\n",
		calls, every, asked)
	header := []string{"limiter", ">at once", ">in the fullest minute", ">too many", ">a minute, on average"}
	report.Table(os.Stdout, header, rows)
}

// A candidate makes a limiter on the clock, and returns what asks it for one call.
type candidate struct {
	name    string
	limiter func(*clockwork.FakeClock) (allow func() bool)
}

var candidates = []candidate{
	{"x/time/rate, burst 100", func(clock *clockwork.FakeClock) func() bool { return xtime(clock, calls) }},
	{"x/time/rate, burst 1", func(clock *clockwork.FakeClock) func() bool { return xtime(clock, 1) }},
	{"pace bursty, capacity 100", func(clock *clockwork.FakeClock) func() bool { return bursty(clock, calls) }},
	{"pace bursty, capacity 0", func(clock *clockwork.FakeClock) func() bool { return bursty(clock, 0) }},
	{"pace window", func(clock *clockwork.FakeClock) func() bool {
		return reserve.Must(window.New(calls, per, reserve.WithClock(clock))).Allow
	}},
}

func xtime(clock *clockwork.FakeClock, burst int) func() bool {
	l := rate.NewLimiter(rate.Limit(reserve.Per(calls, per)), burst)
	return func() bool { return l.AllowN(clock.Now(), 1) }
}

func bursty(clock *clockwork.FakeClock, capacity float64) func() bool {
	return reserve.Must(pace.NewBursty(reserve.Per(calls, per), pace.WithCapacity(capacity),
		reserve.WithStored(capacity), reserve.WithClock(clock))).Allow
}

// run asks, and returns when each call was granted.
func run(limiter func(*clockwork.FakeClock) func() bool) (granted []time.Duration) {
	clock := clockwork.NewFakeClock()
	allow := limiter(clock)
	for t := time.Duration(0); t < asked; t += every {
		for allow() {
			granted = append(granted, t)
		}
		clock.Advance(every)
	}
	return granted
}

// atOnce counts the calls at the time of the first.
func atOnce(granted []time.Duration) (n int) {
	for _, t := range granted {
		if t == granted[0] {
			n++
		}
	}
	return n
}

// fullest returns the most calls in any half-open stretch of per. It is enough to look at
// stretches that end with a call.
func fullest(granted []time.Duration) (most int) {
	from := 0
	for to, end := range granted {
		for granted[from] <= end-per {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}
