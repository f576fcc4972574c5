// Command matrix has pace's outbound transport call eleven kinds of servers, in simulated time, and prints what
// became of it as tables: the time over the ideal, the share of calls that were refused, and the longest call.
//
//	go run ./outbound/matrix                       # in bench/sdk; some minutes
//	go run ./outbound/matrix -kinds 'bucket|log'
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/internal/judge/matrix"
)

// rates are how many calls a second the servers allow.
var rates = []float64{5, 50, 500}

func main() {
	testing.Init()
	match := flag.String("kinds", ".", "only those whose name matches this regular expression")
	runs := flag.Int("runs", 5, "how often each cell is run; the median counts")
	flag.Parse()
	kinds, err := regexp.Compile(*match)
	if err != nil || *runs < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "matrix: bad arguments; see -help")
		os.Exit(2)
	}
	run := func(t *testing.T) { tables(t, os.Stdout, rates, kinds, *runs) }
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "matrix", F: run}}, nil, nil) // bubbles of simulated time need a test
}

func tables(t *testing.T, w io.Writer, rates []float64, kinds *regexp.Regexp, runs int) {
	s := matrix.At(rates[0], 0)
	fmt.Fprintf(w, "%s\n%d goroutines, latency %v to %v, bursts of 0.2 s, windows of %v; medians of %d simulated runs.\n"+
		"Time over the ideal / refused, in %% of all calls that the server saw / longest call in s.\n",
		report.Machine(), s.Goroutines, s.Latency[0], s.Latency[1], s.Window, runs)
	header := []string{""}
	for _, c := range matrix.Clients {
		header = append(header, ">"+c.Name)
	}
	for _, rate := range rates {
		var table [][]string
		for _, k := range matrix.Kinds {
			if !kinds.MatchString(k.Name) {
				continue
			}
			row := []string{k.Name}
			for _, c := range matrix.Clients {
				if c.Fits == nil || c.Fits(k) {
					row = append(row, cell(matrix.Median(t, k, c, matrix.At(rate, 0), runs)))
				} else {
					row = append(row, "")
				}
			}
			table = append(table, row)
		}
		fmt.Fprintf(w, "\n%v/s\n\n", rate)
		report.Table(w, header, table)
	}
}

func cell(o matrix.Outcome) string {
	if !o.Finished() {
		return fmt.Sprintf("(%d of %d)", o.Done, o.Calls)
	}
	return fmt.Sprintf("%.2f / %.1f / %.0f", o.Took, 100*o.Wasted, o.Longest)
}
