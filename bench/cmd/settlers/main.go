// Command settlers measures how much of a limiter's rate is used where callers estimate what a call costs, and settle
// when they know. It prints a Markdown table.
//
// Callers reserve, wait, take their time, settle at less, and begin again, in simulated time: nothing sleeps, and the
// same seed gives the same numbers. The permits used count what calls really used after the warm-up, per
// second. Beside pace stands golang.org/x/time/rate, which is given back what was too much by
// ReserveN(now, -n).
//
// A limiter exceeds its limit by the permits that it let go, and had not got back yet, beyond its rate and what it
// saves up, in the worst stretch of time.
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
	warmUp := flag.Duration("warmup", 5*time.Minute, "simulated time before calls count")
	counted := flag.Duration("for", 20*time.Minute, "simulated time in which they do")
	seed := flag.Uint64("seed", 1, "of the times and amounts")
	command.Main("settlers", func() string {
		if *warmUp < 0 || *counted < time.Second {
			return "-for must be at least 1 s, -warmup not negative"
		}
		return ""
	}, func(context.Context) error {
		simulation{*warmUp, *counted, *seed}.table(os.Stdout)
		return nil
	})
}

var loads = []load{
	{0, 16, 500, span[int]{250, 250}, seconds(0, 0)},
	{0, 16, 500, span[int]{250, 250}, seconds(0.2, 0.2)},
	{0, 16, 1000, span[int]{300, 500}, seconds(0.1, 0.3)},
	{1 * time.Second, 64, 1000, span[int]{300, 500}, seconds(1, 3)},
	{1 * time.Second, 64, 1000, span[int]{300, 500}, seconds(4, 12)},
	{60 * time.Second, 16, 1000, span[int]{300, 500}, seconds(1, 3)},
	{60 * time.Second, 64, 1000, span[int]{300, 500}, seconds(4, 12)},
}

func seconds(from, to float64) span[time.Duration] {
	return span[time.Duration]{time.Duration(from * 1e9), time.Duration(to * 1e9)}
}

// A result is what one load made of both limiters.
type result struct {
	load
	pace, xtime outcome
}

// table runs all loads, and prints what was used.
func (s simulation) table(w io.Writer) {
	fmt.Fprintf(w, "Simulated: %v after a warm-up of %v, seed %d.\n\n", s.counted, s.warmUp, s.seed)
	var rows [][]string
	for _, l := range loads {
		r := result{load: l, pace: s.run(l, newPace(l)), xtime: s.run(l, newXTime(l))}
		rows = append(rows, []string{r.savedUp(), fmt.Sprint(r.callers), fmt.Sprint(r.reserves), r.settlesAt(), r.after(),
			whole(r.pace.used), whole(r.xtime.used), whole(r.exceeds(r.pace)), whole(r.exceeds(r.xtime))})
	}
	report.Table(w, []string{"saved up", ">callers", ">reserve", "settle at", "when", ">pace uses/s",
		">x/time/rate uses/s", ">pace exceeds by", ">x/time/rate exceeds by"}, rows)
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
