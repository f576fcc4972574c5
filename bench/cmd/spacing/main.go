// Command spacing measures how evenly limiters release calls: pace, x/time/rate and uber-go/ratelimit at several rates,
// with one goroutine and with 64 that wait. It prints a Markdown table and draws a picture.
//
// A spacing error is how much the time between two calls that were released one after the other, by any goroutine,
// differs from 1/rate. The time of a call is that at which its goroutine goes on. The limiters run in turn, in
// several short rounds, whose calls are put together. The first tenth of every run is not counted, so that initial
// bursts do not show.
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
	duration := flag.Duration("duration", 2*time.Second, "how long each limiter runs at each rate, all rounds together")
	rounds := flag.Int("rounds", 4, "in how many parts that time is cut")
	out := flag.String("out", "out/spacing.png", "the picture's file")
	command.Main("spacing", func() string {
		if *rounds < 1 || *duration < 100*time.Millisecond*time.Duration(*rounds) {
			return "-duration must be at least 100 ms for each of the -rounds"
		}
		return ""
	}, func(ctx context.Context) error {
		return command.Draw(os.Stdout, *out, func() (func(io.Writer) error, error) {
			results, err := table(ctx, os.Stdout, *duration, *rounds)
			return func(w io.Writer) error { return drawReached(w, results) }, err
		})
	})
}

var (
	rates      = []int{1000, 5000, 20_000}
	goroutines = []int{1, 64}
)

// A setting is a rate and how many goroutines want it.
type setting struct{ perSecond, goroutines int }

// table measures all settings, and prints what each limiter did.
func table(ctx context.Context, w io.Writer, duration time.Duration, rounds int) (map[setting][]result, error) {
	fmt.Fprintf(w, "%s. %v for each limiter at each rate, in %d rounds.\n\n", report.Machine(), duration, rounds)
	results := map[setting][]result{}
	var rows [][]string
	for _, perSecond := range rates {
		for _, n := range goroutines {
			s := setting{perSecond, n}
			fmt.Fprintf(os.Stderr, "spacing: %d/s, goroutines: %d\n", perSecond, n)
			var err error
			if results[s], err = measure(ctx, s, duration/time.Duration(rounds), rounds); err != nil {
				return nil, err
			}
			for _, r := range results[s] {
				rows = append(rows, r.row(s))
			}
		}
	}
	report.Table(w, []string{">rate", ">goroutines", "limiter", ">reached", ">off by %", ">spacing error p50, µs",
		">p99, µs", ">CPU per call, µs"}, rows)
	return results, nil
}
