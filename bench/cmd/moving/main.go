// Command moving measures what it costs when a queue moves: many goroutines sleep on one limiter, once
// while nobody gives anything back, and once while others settle for less, 1,000 times a second, so
// that all promised times move up. In both the same number of calls go. It prints a Markdown table.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	duration := flag.Duration("duration", 2*time.Second, "how long each of the two runs in a round")
	rounds := flag.Int("rounds", 5, "how often both run; medians count")
	goroutines := flag.Int("goroutines", 1000, "how many sleep at any time, about")
	command.Main("moving", func() string {
		if *rounds < 1 || *goroutines < 1 || *duration < 100*time.Millisecond {
			return "-rounds and -goroutines must be positive, -duration at least 100 ms"
		}
		return ""
	}, func(ctx context.Context) error { return run(ctx, os.Stdout, *duration, *rounds, *goroutines) })
}

func run(ctx context.Context, w io.Writer, duration time.Duration, rounds, goroutines int) error {
	fmt.Fprintf(w, "%s. %d goroutines at %d calls/s; medians of %d rounds of %v.\n\n",
		report.Machine(), goroutines, callsPerSecond, rounds, duration)
	var results [2][]result // without settlements, and with
	for range rounds {
		for i := range results {
			r, err := measure(ctx, i == 1, duration, goroutines)
			if err != nil {
				return err
			}
			results[i] = append(results[i], r)
		}
	}
	a, b := medians(results[0]), medians(results[1])
	report.Table(w, []string{">settlements/s", ">calls/s", ">CPU, % of one", ">CPU per call, µs", ">late by p50, µs", ">p99, µs"},
		[][]string{a.row(), b.row()})

	fmt.Fprintf(w, "\n**What pace aims at**\n\n")
	report.Table(w, []string{"what", ">at most", ">measured", "reached"}, [][]string{
		goal("CPU with settlements / without", 2, b.cpu/a.cpu),
		goal("calls/s without settlements / with", 1.05, a.calls/b.calls),
		goal("late with settlements / without, p50", 1.5, b.p50/a.p50),
		goal("late with settlements / without, p99", 1.5, b.p99/a.p99),
	})
	return nil
}

func goal(what string, most, measured float64) []string {
	reached := "no"
	if measured <= most {
		reached = "yes"
	}
	return []string{what, fmt.Sprintf("%.2f", most), fmt.Sprintf("%.2f", measured), reached}
}
