// Command ratios runs the benchmarks of pace and its peers side by side and prints,
// as Markdown tables, what a call takes in nanoseconds, in readings of the clock and
// in calls of golang.org/x/time/rate.
//
// Machines are noisy, and more so over minutes than over milliseconds. So each
// benchmark runs in many short rounds, all limiters of a table in turn; a ratio is
// that of two neighbours in one round, and what is printed is the median over the rounds.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/peers"
	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	testing.Init() // so that testing.Benchmark finds its flags
	rounds := flag.Int("rounds", 11, "how often each benchmark runs")
	each := flag.Duration("each", 40*time.Millisecond, "about how long a benchmark runs in a round")
	command.Main("ratios", func() string {
		if *rounds < 1 || *each <= 0 {
			return "-rounds and -each must be positive"
		}
		return ""
	}, func(context.Context) error { return run(*rounds, *each) })
}

func run(rounds int, each time.Duration) error {
	tables := []struct {
		title      string
		ops        []peers.Op
		goroutines []int
	}{
		{"TryAcquire, granted", peers.TryAcquire(), []int{1}},
		{"TryAcquire, granted, 2 goroutines", peers.TryAcquire(), []int{2}},
		{"TryAcquire, granted, 8 goroutines", peers.TryAcquire(), []int{8}},
		{"TryAcquire, refused", peers.TryRefused(), []int{1, 8}},
		{"Reserve, granted at once", peers.Reserve(), []int{1}},
		{"Reserve, in a queue", peers.ReserveInQueue(), []int{1}},
		{"Reserve in a queue, and Cancel", peers.ReserveAndCancel(), []int{1}},
	}
	fmt.Printf("%s. Medians of %d rounds of %v.\n", report.Machine(), rounds, each)
	if err := flag.Set("test.benchtime", each.String()); err != nil {
		return err
	}
	for _, t := range tables {
		fmt.Fprintf(os.Stderr, "ratios: %s\n", t.title)
		m, err := measure(t.ops, t.goroutines, rounds)
		if err != nil {
			return err
		}
		fmt.Printf("\n**%s**\n\n", t.title)
		report.Table(os.Stdout, []string{"limiter", ">ns", ">± %", ">x clock", ">x x/time", ">allocations"}, m.rows())
	}
	return nil
}

// measured holds, for each limiter, the nanoseconds per call in every round.
type measured struct {
	limiters []string
	ns       map[string][]float64
	allocs   map[string]int64
}

// measure runs the ops in turn, round after round, from each number of goroutines. Where
// there are two numbers, those of the second have a name that tells it.
func measure(ops []peers.Op, goroutines []int, rounds int) (measured, error) {
	m := measured{ns: map[string][]float64{}, allocs: map[string]int64{}}
	for round := range rounds {
		for i, n := range goroutines {
			for _, op := range ops {
				name := op.Limiter
				if i > 0 {
					name = several(name, n)
				}
				r := testing.Benchmark(op.Bench(n))
				if r.N == 0 {
					return m, fmt.Errorf("the benchmark of %s failed", name)
				}
				if round == 0 {
					m.limiters = append(m.limiters, name)
				}
				m.ns[name] = append(m.ns[name], float64(r.T.Nanoseconds())/float64(r.N))
				m.allocs[name] = max(m.allocs[name], r.AllocsPerOp())
			}
		}
	}
	return m, nil
}

// several names a limiter that is called from several goroutines, beside one that is called from fewer.
func several(limiter string, goroutines int) string {
	return fmt.Sprintf("%s, %d goroutines", limiter, goroutines)
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
