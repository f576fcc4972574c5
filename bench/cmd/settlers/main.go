// Command settlers measures what is left of a limiter's rate where callers estimate what a call
// costs, and settle when they know. It prints a Markdown table and draws a picture.
//
// Callers reserve, wait, take their time, settle at less, and begin again, in simulated time: nothing
// sleeps, and the same seed gives the same numbers. The permits used are those that calls really used, of all
// that went after the warm-up, per second.
//
// Beside pace stand golang.org/x/time/rate, given back what was too much by ReserveN(now, -n), and what is
// possible: a naive bucket, recomputed at every step. A limiter exceeds its limit by the permits that it let go, and had
// not back yet, beyond its rate and what it saves up, in the worst stretch of time.
//
// The exit status is 1 if pace is off by more than 3 % from what it aims at, in any row.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	warmUp := flag.Duration("warmup", 5*time.Minute, "simulated time before calls count")
	counted := flag.Duration("for", 20*time.Minute, "simulated time in which they do")
	seed := flag.Uint64("seed", 1, "of the times and amounts")
	out := flag.String("out", "out/settlers.png", "the picture's file")
	command.Main("settlers", func() string {
		if *warmUp < 0 || *counted < time.Second {
			return "-for must be at least 1 s, -warmup not negative"
		}
		return ""
	}, func(context.Context) error {
		ok, err := run(os.Stdout, simulation{*warmUp, *counted, *seed}, *out)
		if err == nil && !ok {
			err = errors.New("pace is off by more than 3 % in some row")
		}
		return err
	})
}

// The loads. Aim is what pace should use, where a number for it was derived; 0: what is possible.
var loads = []struct {
	load
	aim float64
}{
	{load{0, 16, 500, span[int]{250, 250}, seconds(0, 0)}, 0},
	{load{0, 16, 500, span[int]{250, 250}, seconds(0.2, 0.2)}, 0},
	{load{0, 16, 1000, span[int]{300, 500}, seconds(0.1, 0.3)}, 999},
	{load{1 * time.Second, 64, 1000, span[int]{300, 500}, seconds(1, 3)}, 643},
	{load{1 * time.Second, 64, 1000, span[int]{300, 500}, seconds(4, 12)}, 458},
	{load{60 * time.Second, 16, 1000, span[int]{300, 500}, seconds(1, 3)}, 994},
	{load{60 * time.Second, 64, 1000, span[int]{300, 500}, seconds(4, 12)}, 997},
}

func seconds(from, to float64) span[time.Duration] {
	return span[time.Duration]{time.Duration(from * 1e9), time.Duration(to * 1e9)}
}

// off is by how much pace may miss its aim.
const off = 0.03

// A result is what one load made of all limiters.
type result struct {
	load
	aim                   float64
	pace, xtime, possible outcome
}

// reached reports whether pace is as near to its aim as it should be.
func (r result) reached() bool { return math.Abs(r.pace.used/r.aim-1) <= off }

func run(w io.Writer, s simulation, out string) (ok bool, err error) {
	err = command.Draw(w, out, func() (func(io.Writer) error, error) {
		var results []result
		ok, results = s.all(w)
		return func(w io.Writer) error { return drawBars(w, results) }, nil
	})
	return ok, err
}

// all runs all loads, and prints the table.
func (s simulation) all(w io.Writer) (ok bool, results []result) {
	fmt.Fprintf(w, "Simulated: %v after a warm-up of %v, seed %d.\n\n", s.counted, s.warmUp, s.seed)
	ok = true
	var rows [][]string
	for _, l := range loads {
		r := result{load: l.load, aim: l.aim}
		r.pace = s.run(l.load, newPace(l.load))
		r.xtime = s.run(l.load, newXTime(l.load))
		r.possible = s.run(l.load, newNaive(l.load))
		if r.aim == 0 {
			r.aim = r.possible.used
		}
		results, rows = append(results, r), append(rows, r.row())
		ok = ok && r.reached()
	}
	report.Table(w, []string{"saved up", ">callers", ">reserve", "settle at", "when",
		">pace uses/s", ">aims at", ">ratio", "reached", ">possible", ">x/time/rate uses/s", ">pace exceeds by", ">x/time/rate exceeds by"}, rows)
	return ok, results
}

func (r result) row() []string {
	reached := "no"
	if r.reached() {
		reached = "yes"
	}
	return []string{
		r.savedUp(), fmt.Sprint(r.callers), fmt.Sprint(r.reserves), r.settlesAt(), r.after(),
		whole(r.pace.used), whole(r.aim), fmt.Sprintf("%.3f", r.pace.used/r.aim), reached,
		whole(r.possible.used), whole(r.xtime.used),
		whole(r.exceeds(r.pace)), whole(r.exceeds(r.xtime)),
	}
}

// exceeds returns by how many permits the worst stretch of time exceeds the rate and what is saved up.
func (l load) exceeds(o outcome) float64 { return max(0, o.worst-l.store()) }

func (l load) savedUp() string {
	if l.saved == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%g s", l.saved.Seconds())
}

func (l load) settlesAt() string {
	if l.actual.from == l.actual.to {
		return fmt.Sprint(l.actual.from)
	}
	return fmt.Sprintf("%d to %d", l.actual.from, l.actual.to)
}

func (l load) after() string {
	from, to := l.takes.from.Seconds(), l.takes.to.Seconds()
	switch {
	case to == 0:
		return "at once"
	case from == to:
		return fmt.Sprintf("after %g s", to)
	default:
		return fmt.Sprintf("after %g to %g s", from, to)
	}
}

func whole(x float64) string { return fmt.Sprintf("%.0f", x) }
