// Command demo shows what pace is for. It starts an HTTP API on this machine that allows 100 calls in any 2 seconds, as
// an API that says "100 a minute" does in its minute, and answers 429 to others. 64 goroutines make 250 calls to it:
// without a limiter, behind golang.org/x/time/rate at the right rate, with both bursts that it could be given, and with
// pace's window. Then three programs that know nothing of each other make 300 calls with one key. It ends by itself in
// under a minute with two tables and two pictures.
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
	"strings"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/internal/sharing"
	"github.com/nextfree/pace/reserve/pacetest"
)

const (
	allowed        = 100 // calls in any stretch of per
	per            = 2 * time.Second
	callsPerSecond = allowed / 2 // on average
	goroutines     = 64
	// A part is stopped after this, so that the demo ends in any case.
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
		if err := oneProgram().Run(ctx, *addr, *out); err != nil {
			return err
		}
		return threePrograms().Run(ctx, *addr, strings.TrimSuffix(*out, ".png")+"-programs.png")
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
	return pace.Must(pacetest.New(pacetest.Window(allowed, per), pacetest.WithHandler(answer)))
}

// An experiment is one table and one picture.
type experiment = demo.Demo[*pacetest.Server, half]

func oneProgram() experiment {
	const calls = 250
	return newExperiment(calls, []string{unlimited, even, bursts, paced},
		fmt.Sprintf(`is an API that allows %d calls in any %v, and answers any other
with 429 and Retry-After. A call takes it %d to %d ms. %d goroutines make %d calls; one
that is refused waits as long as Retry-After says, and tries again.
`, allowed, per, fastest.Milliseconds(), slowest.Milliseconds(), goroutines, calls),
		"100 calls in any 2 s are allowed: x/time/rate is slow or refused, pace is neither")
}

func threePrograms() experiment {
	const calls = 300
	return newExperiment(calls, []string{threeTold, threePace},
		fmt.Sprintf(`is the same API. Three programs use one key, and know nothing of each
other: together they make %d calls. x/time/rate is told the whole limit in each of them,
pace is told nothing.
`, calls),
		"Three programs use one key and do not know it: with pace few calls are refused")
}

func newExperiment(calls int, parts []string, intro, title string) experiment {
	return experiment{
		Parts:  parts,
		Server: newAPI,
		Intro:  func(url string) string { return url + " " + intro },
		Half: func(ctx context.Context, name, url string, api *pacetest.Server) (half, error) {
			h, err := makeCalls(ctx, name, url, calls)
			all := api.Calls()
			for _, c := range all {
				h.seen = append(h.seen, demo.Call{At: c.At.Sub(all[0].At), Refused: !c.Accepted})
			}
			return h, err
		},
		Header: []string{"", ">first 100 after", ">all after", ">answered", ">sent", ">refused", ">wasted"},
		Outro: fmt.Sprintf("At best all are answered after %.1f s. The picture shows the calls in every %v.",
			(time.Duration((calls-1)/allowed) * per).Seconds(), step),
		Draw: func(w io.Writer, halves []half) error { return draw(w, title, halves) },
	}
}
