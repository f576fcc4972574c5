// Command aimock has openai-go, anthropic-sdk-go and genai, paced by pace, call a mock of their
// servers that was written elsewhere: @copilotkit/aimock, which it fetches with npm into a
// temporary folder. It compares what the clients were told that they have used with what pace has
// charged, prints a table, and fails if they differ.
//
//	go run ./llm/cmd/aimock                # in bench/sdk; needs node and npm
//	go run ./llm/cmd/aimock -refuse 0.2    # a fifth of the calls is refused with 429; the clients ask again
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/llm"
	"github.com/nextfree/pace/reserve/window"
)

func main() {
	calls := flag.Int("calls", 50, "in each way")
	refuse := flag.Float64("refuse", 0, "the share of calls that the mock refuses")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *calls, *refuse); err != nil {
		fmt.Fprintln(os.Stderr, "aimock:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, calls int, refuse float64) error {
	m, err := startMock(ctx, calls, refuse)
	if err != nil {
		return err
	}
	defer m.stop()
	var rows [][]string
	differ := 0
	for _, w := range ways {
		o, err := w.try(ctx, m.url, calls)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if o.told != o.charged {
			differ++
		}
		rows = append(rows, []string{w.name, fmt.Sprint(calls), fmt.Sprint(o.failed), fmt.Sprint(o.told.input), fmt.Sprint(o.charged.input),
			fmt.Sprint(o.told.output), fmt.Sprint(o.charged.output)})
	}
	fmt.Printf("@copilotkit/aimock %s, %s of the calls refused.\n\n", version, strings.TrimSuffix(fmt.Sprintf("%.0f", 100*refuse), ".0")+" %")
	report.Table(os.Stdout, []string{"", ">calls", ">failed", ">input, told", ">charged", ">output, told", ">charged"}, rows)
	if differ > 0 {
		return fmt.Errorf("in %d ways pace has charged something else than was used", differ)
	}
	return nil
}

// usage is in tokens.
type usage struct{ input, output int }

type outcome struct {
	told, charged usage
	failed        int
}

// try makes calls in one way, from 8 goroutines.
func (w way) try(ctx context.Context, url string, calls int) (o outcome, err error) {
	const whole = 1 << 30 // limiters that forget nothing
	input, output := reserve.Must(window.New(whole, 24*time.Hour)), reserve.Must(window.New(whole, 24*time.Hour))
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	transport, err := llm.New(base, w.provider, llm.Limits{InputTokensPerMinute: whole, OutputTokensPerMinute: whole},
		llm.WithLimiters(func(limit string, _ llm.Key) reserve.Reserver {
			switch limit {
			case "input-tokens":
				return input
			case "output-tokens":
				return output
			}
			return nil
		}))
	if err != nil {
		return o, err
	}
	call := w.call(url, &http.Client{Transport: transport})
	var all sync.WaitGroup
	var mu sync.Mutex // guards o
	for g := range 8 {
		all.Go(func() {
			for i := g; i < calls; i += 8 {
				u, err := call(ctx, question(i))
				mu.Lock()
				if err != nil {
					o.failed++
					fmt.Fprintf(os.Stderr, "%s: %v\n", w.name, err)
				}
				o.told.input += u.input
				o.told.output += u.output
				mu.Unlock()
			}
		})
	}
	all.Wait()
	o.charged = usage{whole - int(input.Stored()), whole - int(output.Stored())}
	return o, ctx.Err()
}
