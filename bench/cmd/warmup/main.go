// Command warmup draws the calls that a bursty and a warming-up limiter let through, under load, after
// an idle time, and under load again. It prints a Markdown table and draws a picture.
//
// The limiters run on a fake clock, so the same numbers come out each time, and at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

const (
	permitsPerSecond = 100
	period           = 10 * time.Second
)

// A phase is a time in which one caller makes calls, as many as it may, and the idle time after it.
type phase struct{ load, idle time.Duration }

var phases = []phase{
	{15 * time.Second, 7500 * time.Millisecond}, // half cold: it cools in the second half of the period
	{10 * time.Second, 10 * time.Second},
	{12500 * time.Millisecond, 0},
}

// A contender is a limiter, by the call that makes it.
type contender struct {
	name string
	new  func(reserve.Option) (*reserve.Limiter, error)
}

var contenders = []contender{
	{"pace.NewBursty(100)", func(clock reserve.Option) (*reserve.Limiter, error) {
		return pace.NewBursty(permitsPerSecond, clock)
	}},
	{"warmup.New(100, 10*time.Second)", func(clock reserve.Option) (*reserve.Limiter, error) {
		return warmup.New(permitsPerSecond, period, clock)
	}},
}

func main() {
	out := flag.String("out", "out/warmup.png", "the picture's file")
	command.Main("warmup", nil, func(context.Context) error { return run(os.Stdout, *out) })
}

func run(w io.Writer, out string) error {
	return command.Draw(w, out, func() (func(io.Writer) error, error) {
		all, err := table(w)
		return func(w io.Writer) error { return drawCalls(w, all) }, err
	})
}

// table prints how many calls went, and returns when.
func table(w io.Writer) (all [][]time.Duration, err error) {
	header := []string{"calls/s"}
	var rows [][]string
	for _, c := range contenders {
		calls, err := calls(c)
		if err != nil {
			return nil, err
		}
		all = append(all, calls)
		rows = append(rows, []string{c.name})
	}
	for begin := time.Duration(0); begin < length(); begin += 5 * time.Second {
		header = append(header, fmt.Sprintf(">%.0f to %.0f s", begin.Seconds(), (begin+5*time.Second).Seconds()))
		for i, of := range all {
			sum := 0
			for _, at := range of {
				if at >= begin && at < begin+5*time.Second {
					sum++
				}
			}
			rows[i] = append(rows[i], fmt.Sprintf("%.0f", float64(sum)/5))
		}
	}
	report.Table(w, header, rows)
	return all, nil
}

// calls returns when one caller goes, who asks for the next permit as soon as it got one.
func calls(c contender) (at []time.Duration, err error) {
	clock := clockwork.NewFakeClock()
	limiter, err := c.new(reserve.WithClock(clock))
	if err != nil {
		return nil, err
	}
	begin, end := clock.Now(), time.Duration(0)
	for _, p := range phases {
		end += p.load
		for {
			r, err := limiter.ReserveWithin(context.Background(), 1, end-clock.Since(begin)-1)
			var refused *reserve.WaitError
			if errors.As(err, &refused) {
				break // the load ends before that
			}
			if err != nil {
				return nil, err
			}
			clock.Advance(r.Delay())
			at = append(at, clock.Since(begin))
		}
		end += p.idle
		clock.Advance(end - clock.Since(begin))
	}
	return at, nil
}

// length is that of all phases.
func length() (d time.Duration) {
	for _, p := range phases {
		d += p.load + p.idle
	}
	return d
}
