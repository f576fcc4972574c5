// Command spacing measures how evenly limiters release calls: pace, x/time/rate and
// uber-go/ratelimit at several rates, with one goroutine and with many that wait. It
// prints a Markdown table and draws a picture.
//
// A spacing error is how much the time between two calls that were released one
// after the other, by any goroutine, differs from 1/rate. The time of a call is that
// at which its goroutine goes on. The limiters run in turn, in several short rounds, whose
// calls are put together; the first tenth of every run is not counted, so that
// initial bursts do not show.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"time"

	"github.com/nextfree/pace/bench/internal/picture"
	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	duration := flag.Duration("duration", 2*time.Second, "how long each limiter runs at each rate, all rounds together")
	rounds := flag.Int("rounds", 4, "in how many parts that time is cut")
	out := flag.String("out", "out/spacing.png", "the picture's file")
	one := flag.String("one", "out/spacing-5000.png", "the file of the picture of one setting, 5000/s and 64 goroutines")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *duration < 100*time.Millisecond*time.Duration(*rounds) {
		fmt.Fprintln(os.Stderr, "spacing: -duration must be at least 100 ms for each of the -rounds, and there are no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *duration, *rounds, *out, *one); err != nil {
		fmt.Fprintln(os.Stderr, "spacing:", err)
		os.Exit(1)
	}
}

var (
	rates      = []int{1000, 5000, 20_000}
	goroutines = []int{1, 64}
)

// A setting is a rate and how many goroutines want it.
type setting struct{ perSecond, goroutines int }

func run(ctx context.Context, duration time.Duration, rounds int, out, one string) (err error) {
	file, err := picture.Create(out)
	if err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	oneFile, err := picture.Create(one)
	if err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	defer func() { err = errors.Join(err, oneFile.Close()) }()
	fmt.Printf("%s. %v for each limiter at each rate, in %d rounds.\n\n", report.Machine(), duration, rounds)
	results := map[setting][]result{}
	var rows [][]string
	for _, perSecond := range rates {
		for _, n := range goroutines {
			s := setting{perSecond, n}
			fmt.Fprintf(os.Stderr, "spacing: %d/s, goroutines: %d\n", perSecond, n)
			if results[s], err = measure(ctx, s, duration/time.Duration(rounds), rounds); err != nil {
				return err
			}
			for _, r := range results[s] {
				rows = append(rows, r.row(s))
			}
		}
	}
	report.Table(os.Stdout, []string{">rate", ">goroutines", "limiter", ">reached", ">off by %", ">spacing error p50, µs", ">p99, µs", ">CPU per call, µs"}, rows)
	fmt.Printf("\n**What pace aims at**\n\n")
	report.Table(os.Stdout, []string{">rate", ">goroutines", "limiter", "what", ">at most", ">measured", "reached"}, goals(results))

	if err := file.Save(func(w io.Writer) error { return drawCurves(w, results) }); err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	s := setting{5000, 64}
	if err := oneFile.Save(func(w io.Writer) error { return drawOne(w, s, results[s]) }); err != nil {
		return fmt.Errorf("can't write the picture: %w", err)
	}
	fmt.Printf("\nPictures: %s, %s\n", out, one)
	return nil
}

// goals compares pace with what it aims at.
func goals(results map[setting][]result) (rows [][]string) {
	row := func(s setting, name, what string, most, measured float64) {
		reached := "yes"
		if !(measured <= most) {
			reached = "no"
		}
		rows = append(rows, []string{fmt.Sprint(s.perSecond), fmt.Sprint(s.goroutines), name, what,
			fmt.Sprintf("%.2f", most), fmt.Sprintf("%.2f", measured), reached})
	}
	for _, pair := range [][2]int{{paceStrict, xtimeStrict}, {paceBursty, xtimeBursty}} {
		for _, n := range goroutines {
			s := setting{5000, n}
			p, x := results[s][pair[0]], results[s][pair[1]]
			row(s, p.name, "rate off by, %", 0.5, math.Abs(p.offBy()))
			row(s, p.name, "p50 / that of "+x.name, 0.1, p.p50()/x.p50())
			if n > 1 {
				row(s, p.name, "p99 / that of "+x.name, 0.1, p.p99()/x.p99())
				row(s, p.name, "CPU / that of "+x.name, 1.6, p.cpuPerCall()/x.cpuPerCall())
			}
		}
		s := setting{1000, 1}
		p, x := results[s][pair[0]], results[s][pair[1]]
		row(s, p.name, "CPU / that of "+x.name, 2, p.cpuPerCall()/x.cpuPerCall())
	}
	return rows
}
