// Command demo shows what pace is for. It starts an HTTP API on this machine that allows 50 calls a second, with a
// burst of 10, and answers 429 to others. Then 64 goroutines make 300 calls to it: unpaced, behind
// golang.org/x/time/rate at the right rate, and paced by pace. It ends by itself in under 40 seconds with a table and a
// picture.
//
// With -shared it shows a limit that three processes share through a file, one of which is killed, in 8 seconds:
//
//	go run ./cmd/demo -shared                                             # in bench
//	go run ./cmd/demo -shared -processes 8 -rate 500 -lasts 1m -kill=false
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/internal/sharing"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/pacetest"
)

const (
	callsPerSecond = 50 // that the API allows
	burst          = 10 // at one moment
	calls          = 300
	goroutines     = 64
	// A half is stopped after this, so that the demo ends in any case. Unpaced calls
	// that meet each other again and again take 29 s, at worst.
	limit = 20 * time.Second
)

func main() {
	if sharing.Worker() {
		return
	}
	shared := flag.Bool("shared", false, "the demo of processes that share a limit through a file")
	addr, out := demo.Flags()
	e := sharing.Flags()
	command.Main("demo", e.Misuse, func(ctx context.Context) error {
		if *shared {
			return e.Run(ctx, *out)
		}
		return theDemo().Run(ctx, *addr, *out)
	})
}

// How long the API takes to answer a call that it allows.
const fastest, slowest = 20 * time.Millisecond, 60 * time.Millisecond

// newAPI returns the API.
func newAPI() *pacetest.Server {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(fastest + rand.N(slowest-fastest))
		io.WriteString(w, "done\n")
	})
	return reserve.Must(pacetest.New(pacetest.Bucket(callsPerSecond, burst), pacetest.WithHandler(answer)))
}

func theDemo() demo.Demo[*pacetest.Server, half] {
	return demo.Demo[*pacetest.Server, half]{
		Parts:  []string{demo.Unpaced, xtime, demo.Paced},
		Server: newAPI,
		Intro: func(url string) string {
			return fmt.Sprintf(`%s is an API that allows %d calls/s with a burst of %d, and answers any other
with 429 and Retry-After: 1. A call takes it %d to %d ms. %d goroutines make %d calls; one
that is refused waits as long as Retry-After says, and tries again.
`, url, callsPerSecond, burst, fastest.Milliseconds(), slowest.Milliseconds(), goroutines, calls)
		},
		Half: func(ctx context.Context, name, url string, api *pacetest.Server) (half, error) {
			h, err := makeCalls(ctx, name, url)
			all := api.Calls()
			for _, c := range all {
				h.seen = append(h.seen, demo.Call{At: c.At.Sub(all[0].At), Refused: !c.Accepted})
			}
			return h, err
		},
		Header: []string{"", ">time", ">calls answered", ">calls sent", ">refused", ">wasted", ">longest wait"},
		Outro: fmt.Sprintf("At best it takes %.1f s: %d calls at once, and the other %d at %d/s. "+
			"The picture shows the calls in every %v.",
			(time.Duration(calls-burst) * time.Second / callsPerSecond).Seconds(), burst, calls-burst, callsPerSecond, step),
		Draw: draw,
	}
}
