// Command matrix has pace's outbound transport call eleven kinds of servers, in simulated time, and prints what became of
// it as a table: the time over the ideal, the share of calls that were refused, and the longest call.
//
//	go run ./outbound/matrix                                   # in bench/sdk; some minutes
//	go run ./outbound/matrix -rates 50 -kinds 'bucket|log'
//	go run ./outbound/matrix -burst 2 -window 10s -latency 50ms-200ms -goroutines 256
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/internal/matrix"
)

type settings struct {
	rates      []float64
	kinds      *regexp.Regexp
	runs       int
	burst      float64
	window     time.Duration
	latency    [2]time.Duration
	goroutines int
	seconds    float64
}

func main() {
	testing.Init()
	var s settings
	rates := flag.String("rates", "5,50,500", "calls per second that the servers allow")
	kinds := flag.String("kinds", ".", "only those whose name matches this regular expression")
	flag.IntVar(&s.runs, "runs", 5, "the median of so many runs is shown")
	flag.Float64Var(&s.burst, "burst", 0.2, "of token buckets, in seconds")
	flag.DurationVar(&s.window, "window", 2*time.Second, "of servers that count in windows")
	latency := flag.String("latency", "5ms-20ms", "of the network, both ways together")
	flag.IntVar(&s.goroutines, "goroutines", 64, "that call")
	flag.Float64Var(&s.seconds, "seconds", 0, "for how long they call at best; 0: 12, and 20 at less than 10/s")
	flag.Parse()
	if err := s.parse(*rates, *kinds, *latency); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(2)
	}
	run := func(t *testing.T) { s.print(t, os.Stdout) }
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "matrix", F: run}}, nil, nil) // bubbles of simulated time need a test
}

func (s *settings) parse(rates, kinds, latency string) (err error) {
	for _, r := range strings.Split(rates, ",") {
		rate, err := strconv.ParseFloat(r, 64)
		if err != nil || !(rate > 0) {
			return fmt.Errorf("a rate is %q", r)
		}
		s.rates = append(s.rates, rate)
	}
	if s.kinds, err = regexp.Compile(kinds); err != nil {
		return err
	}
	from, to, _ := strings.Cut(latency, "-")
	for i, v := range []string{from, to} {
		if s.latency[i], err = time.ParseDuration(v); err != nil {
			return err
		}
	}
	if s.runs < 1 || s.goroutines < 1 || s.latency[0] < 0 || s.latency[1] < s.latency[0] || flag.NArg() > 0 {
		return fmt.Errorf("bad arguments; see -help")
	}
	return nil
}

// setting returns a cell's.
func (s *settings) setting(rate float64) matrix.Setting {
	c := matrix.At(rate, 0)
	c.Burst = max(2, s.burst*rate)
	c.Window, c.Latency, c.Goroutines = s.window, s.latency, s.goroutines
	if s.seconds > 0 {
		c.Calls = max(1, int(rate*s.seconds))
	}
	return c
}

func (s *settings) print(t *testing.T, w io.Writer) {
	fmt.Fprintf(w, "%s\n%d goroutines, latency %v to %v, bursts of %v s, windows of %v; medians of %d simulated runs.\n"+
		"Time over the ideal / refused, in %% of all calls that the server saw / longest call in s.\n",
		report.Machine(), s.goroutines, s.latency[0], s.latency[1], s.burst, s.window, s.runs)
	header := []string{""}
	for _, c := range matrix.Clients {
		header = append(header, ">"+c.Name)
	}
	for _, rate := range s.rates {
		var table [][]string
		for _, k := range matrix.Kinds {
			if !s.kinds.MatchString(k.Name) {
				continue
			}
			row := []string{k.Name}
			for _, c := range matrix.Clients {
				if c.Fits != nil && !c.Fits(k) {
					row = append(row, "")
					continue
				}
				o := matrix.Median(t, k, c, s.setting(rate), s.runs)
				row = append(row, cell(o))
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
