// Command replay replays a trace of calls to a language model, with openai-go, against a server
// that allows so many requests and tokens in any minute: unpaced, with two limiters of x/time/rate,
// and with pace. Time is simulated. It prints a table.
//
//	go run ./llm/cmd/replay                # in bench/sdk; some minutes
//	go run ./llm/cmd/replay -rows pace -requests 500
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/bench/sdk/llm/server"
)

type settings struct {
	trace            string
	speed            float64
	requests, tokens int
	rows             *regexp.Regexp
}

func main() {
	testing.Init()
	var s settings
	flag.StringVar(&s.trace, "trace", "../../reserve/outbound/llm/testdata/azure-code-2023.csv.gz", "the trace's file: time, tokens of the prompt, tokens of the reply")
	flag.Float64Var(&s.speed, "speed", 20, "so many times as fast as it was")
	flag.IntVar(&s.requests, "requests", 1000, "that the server allows in a minute")
	flag.IntVar(&s.tokens, "tokens", 2_000_000, "that the server allows in a minute")
	rows := flag.String("rows", ".", "only those whose name matches this regular expression")
	flag.Parse()
	var err error
	if s.rows, err = regexp.Compile(*rows); err != nil || flag.NArg() > 0 || !(s.speed > 0) || s.requests < 1 || s.tokens < 1 {
		fmt.Fprintln(os.Stderr, "replay: bad arguments; see -help")
		os.Exit(2)
	}
	calls, err := readTrace(s.trace)
	if err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
	run := func(t *testing.T) {
		if err := s.print(t, os.Stdout, calls); err != nil {
			t.Error(err)
		}
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "replay", F: run}}, nil, nil) // a bubble of simulated time needs a test
}

func (s *settings) print(t *testing.T, w io.Writer, calls []call) error {
	requests, tokens := s.requests, s.tokens
	sum, largest := 0, 0
	for i := range calls {
		c := &calls[i]
		c.at = time.Duration(float64(c.at) / s.speed)
		c.prompt = server.Tokens(c.text()) // the shortest ones have to say what they want
		sum += c.prompt + c.reply
		largest = max(largest, c.prompt+c.reply)
	}
	best := optimum(calls, requests, tokens)
	fmt.Fprintf(w, "%s. %d calls in %.1f min of simulated time, %d tokens, at most %d each; %d requests and %d tokens in any minute.\n\n",
		report.Machine(), len(calls), calls[len(calls)-1].at.Minutes(), sum, largest, requests, tokens)
	rows := [][]string{{"at best: in order, sizes known", fmt.Sprintf("%.2f min", best.Minutes()), "100 %", fmt.Sprint(len(calls)), "0", "0", ""}}
	for _, c := range clients {
		if !s.rows.MatchString(c.name) {
			continue
		}
		begin := time.Now()
		o, err := replay(t, c, calls, requests, tokens)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %.1f s\n", c.name, time.Since(begin).Seconds())
		share := "-"
		if o.failed == 0 {
			share = fmt.Sprintf("%.1f %%", 100*best.Seconds()/o.last.Seconds())
		}
		rows = append(rows, []string{c.name, fmt.Sprintf("%.2f min", o.last.Minutes()), share, fmt.Sprint(o.counts.Answered),
			fmt.Sprint(o.failed), fmt.Sprint(o.counts.Refused), fmt.Sprint(o.counts.MostTokens)})
	}
	report.Table(w, []string{"", ">last call goes at", ">of the best", ">answered", ">failed", ">429s", ">most tokens in a minute"}, rows)
	return nil
}
