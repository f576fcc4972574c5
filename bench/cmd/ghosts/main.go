// Command ghosts measures what callers leave behind that queue and then give up. It prints
// Markdown tables and draws a picture.
//
// First, for how long the next caller waits: it should be for one permit, in whichever order the others have left.
// On a fake clock, where a limiter has one, so that these numbers are exact.
//
// Then, what it costs when many goroutines that wait give up at about the same moment, in random order.
//
// The exit status is 1 if pace misses any of its aims.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	rounds := flag.Int("rounds", 3, "how often the goroutines give up; the median counts")
	out := flag.String("out", "out/ghosts.png", "the picture's file")
	command.Main("ghosts", func() string {
		if *rounds < 1 {
			return "-rounds must be at least 1"
		}
		return ""
	}, func(ctx context.Context) error {
		ok, err := run(ctx, os.Stdout, []crowd{{10_000, 300 * time.Millisecond}, {100_000, 5 * time.Second}}, *rounds, *out)
		if err == nil && !ok {
			err = errors.New("pace misses an aim")
		}
		return err
	})
}

// A crowd is a number of goroutines, and the processor time that all may take to give up.
type crowd struct {
	goroutines int
	most       time.Duration
}

// interval is how long the next caller should wait: for its permit, at 10/s.
const (
	permitsPerSecond = 10
	interval         = time.Second / permitsPerSecond
)

func run(ctx context.Context, w io.Writer, crowds []crowd, rounds int, out string) (ok bool, err error) {
	err = command.Draw(w, out, func() (func(io.Writer) error, error) {
		var waits map[string][]time.Duration
		ok, waits, err = measureAll(ctx, w, crowds, rounds)
		return func(w io.Writer) error { return drawBars(w, waits) }, err
	})
	return ok, err
}

// measureAll prints both tables, and returns the waits that the first one has.
func measureAll(ctx context.Context, w io.Writer, crowds []crowd, rounds int) (ok bool, waits map[string][]time.Duration, err error) {
	ok, waits = true, map[string][]time.Duration{}
	reached := func(r bool) string {
		if r {
			return "yes"
		}
		ok = false
		return "no"
	}

	fmt.Fprintf(w, "%s. At %d/s.\n\n", report.Machine(), permitsPerSecond)
	fmt.Fprintf(w, "**The next caller's wait, in seconds, after all others have given up**\n\n")
	header := []string{">callers", "limiter"}
	for _, o := range orders {
		header = append(header, ">"+o.name)
	}
	var rows [][]string
	for _, n := range queues {
		for _, c := range contenders {
			row, good := []string{fmt.Sprint(n), c.name}, true
			for _, o := range orders {
				wait := nextWait(c, n, o)
				waits[c.name] = append(waits[c.name], wait)
				row = append(row, seconds(wait))
				good = good && wait <= interval
			}
			if c.pace {
				row = append(row, seconds(interval), reached(good))
			} else {
				row = append(row, "", "")
			}
			rows = append(rows, row)
		}
	}
	header = append(header, ">at most", "reached")
	report.Table(w, header, rows)

	fmt.Fprintf(w, "\n**Goroutines that wait and give up, in random order. Medians of %d rounds**\n\n", rounds)
	rows = nil
	for _, crowd := range crowds {
		for _, s := range sleepers {
			fmt.Fprintf(os.Stderr, "ghosts: %d goroutines, %s\n", crowd.goroutines, s.name)
			r, err := measure(ctx, s, crowd.goroutines, rounds)
			if err != nil {
				return false, nil, err
			}
			row := []string{fmt.Sprint(crowd.goroutines), s.name, seconds(r.asking), seconds(r.leaving), "", seconds(r.next), ""}
			if s.pace {
				row[4], row[6] = seconds(crowd.most), reached(r.leaving <= crowd.most && r.next <= interval)
			}
			rows = append(rows, row)
		}
	}
	report.Table(w, []string{">goroutines", "limiter", ">CPU to ask, s", ">CPU to give up, s", ">at most",
		">next caller's wait, s", "reached"}, rows)

	return ok, waits, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }
