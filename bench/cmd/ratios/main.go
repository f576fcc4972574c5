// Command ratios runs the benchmarks of pace and its peers side by side and prints,
// as Markdown tables, what a call takes in nanoseconds, in readings of the clock and
// in calls of golang.org/x/time/rate.
//
// Machines are noisy, and more so over minutes than over milliseconds. So each
// benchmark runs in many short rounds, all limiters of a table in turn; a ratio is
// that of two neighbours in one round, and what is printed is the median over the rounds.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nextfree/pace/bench/internal/peers"
	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	testing.Init() // so that testing.Benchmark finds its flags
	rounds := flag.Int("rounds", 11, "how often each benchmark runs")
	each := flag.Duration("each", 40*time.Millisecond, "about how long a benchmark runs in a round")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 || *each <= 0 {
		fmt.Fprintln(os.Stderr, "ratios: -rounds and -each must be positive, and there are no arguments")
		os.Exit(2)
	}
	if err := flag.Set("test.benchtime", each.String()); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
	if err := run(*rounds, *each); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

func run(rounds int, each time.Duration) error {
	tables := []struct {
		title      string
		ops        []peers.Op
		goroutines int
		goals      []goal
	}{
		{"TryAcquire, granted", peers.TryAcquire(), 1, []goal{
			{limiter: peers.Bursty, to: peers.Clock, ratio: 1.5},
			{limiter: peers.WarmUp, to: peers.Clock, ratio: 1.65},
		}},
		{"TryAcquire, granted, 2 goroutines", peers.TryAcquire(), 2, halfOfXTime},
		{"TryAcquire, granted, 8 goroutines", peers.TryAcquire(), 8, halfOfXTime},
		{"Reserve, granted at once", peers.Reserve(), 1, halfOfXTime},
		{"Reserve, in a queue", peers.ReserveInQueue(), 1, halfOfXTime},
		{"Reserve in a queue, and Cancel", peers.ReserveAndCancel(), 1, nil},
	}
	fmt.Printf("%s. Medians of %d rounds of %v.\n", report.Machine(), rounds, each)
	var goals [][]string
	for _, t := range tables {
		fmt.Fprintf(os.Stderr, "ratios: %s\n", t.title)
		m, err := measure(t.ops, t.goroutines, rounds)
		if err != nil {
			return err
		}
		fmt.Printf("\n**%s**\n\n", t.title)
		report.Table(os.Stdout, []string{"limiter", ">ns", ">± %", ">x clock", ">x x/time", ">allocations"}, m.rows())
		for _, g := range t.goals {
			goals = append(goals, g.row(t.title, m))
		}
	}
	fmt.Printf("\n**What pace aims at**\n\n")
	report.Table(os.Stdout, []string{"what", "limiter", "compared with", ">at most", ">measured", "reached"}, goals)
	return nil
}

// A goal is the largest ratio that a limiter's time should have to another's.
type goal struct {
	limiter, to string
	ratio       float64
}

var halfOfXTime = []goal{
	{limiter: peers.Bursty, to: peers.XTime, ratio: 0.5},
	{limiter: peers.WarmUp, to: peers.XTime, ratio: 0.5},
}

func (g goal) row(title string, m measured) []string {
	got := m.ratio(g.limiter, g.to)
	reached := "yes"
	if got > g.ratio {
		reached = "no"
	}
	return []string{title, g.limiter, g.to, fmt.Sprintf("%.2f", g.ratio), fmt.Sprintf("%.2f", got), reached}
}

// measured holds, for each limiter, the nanoseconds per call in every round.
type measured struct {
	limiters []string
	ns       map[string][]float64
	allocs   map[string]int64
}

// measure runs the ops in turn, round after round.
func measure(ops []peers.Op, goroutines, rounds int) (measured, error) {
	m := measured{ns: map[string][]float64{}, allocs: map[string]int64{}}
	for range rounds {
		for _, op := range ops {
			r := testing.Benchmark(op.Bench(goroutines))
			if r.N == 0 {
				return m, fmt.Errorf("the benchmark of %s failed", op.Limiter)
			}
			m.ns[op.Limiter] = append(m.ns[op.Limiter], float64(r.T.Nanoseconds())/float64(r.N))
			m.allocs[op.Limiter] = max(m.allocs[op.Limiter], r.AllocsPerOp())
		}
	}
	for _, op := range ops {
		m.limiters = append(m.limiters, op.Limiter)
	}
	return m, nil
}

// ratio returns the median, over the rounds, of one limiter's time to another's.
func (m measured) ratio(limiter, to string) float64 {
	ratios := make([]float64, len(m.ns[limiter]))
	for i, ns := range m.ns[limiter] {
		ratios[i] = ns / m.ns[to][i]
	}
	return quantile(ratios, 0.5)
}

func (m measured) rows() (rows [][]string) {
	for _, l := range m.limiters {
		median := quantile(m.ns[l], 0.5)
		spread := (quantile(m.ns[l], 0.75) - quantile(m.ns[l], 0.25)) / 2 / median
		rows = append(rows, []string{l,
			fmt.Sprintf("%.1f", median),
			fmt.Sprintf("%.0f", 100*spread),
			fmt.Sprintf("%.2f", m.ratio(l, peers.Clock)),
			fmt.Sprintf("%.2f", m.ratio(l, peers.XTime)),
			fmt.Sprint(m.allocs[l])})
	}
	return rows
}

// quantile returns the value below which the fraction q of the values is.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
