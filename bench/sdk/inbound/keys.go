package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nextfree/pace/bench/internal/cpu"
)

// keySetups are limits for each client: by how many clients from how many goroutines requests come, in
// no order. At 1e6 a day a client has used some of its limit when it comes again; at 1e9 it is full
// again.
var keySetups = []struct {
	name                string
	clients, goroutines int
	perDay              int
}{
	{"1 client, 1 goroutine", 1, 1, 1_000_000_000},
	{"1 client, 8", 1, 8, 1_000_000_000},
	{"100,000 clients, 1e6 a day, 1", 100_000, 1, 1_000_000},
	{"100,000 clients, 1e6 a day, 8", 100_000, 8, 1_000_000},
	{"100,000 clients, 1e9 a day, 8", 100_000, 8, 1_000_000_000},
}

// perKeyRound is how many requests a round of one contender has.
const perKeyRound = 200_000

// measureKeys prints the processor time of a request by the number of clients and goroutines: the
// least of some rounds, in which the contenders take turns.
func measureKeys(out io.Writer, rounds int) error {
	fmt.Fprintf(out, "## Processor time of a request by clients and goroutines, in process (least of %d rounds of %d in turn)\n\n| |",
		rounds, perKeyRound)
	for _, s := range keySetups {
		fmt.Fprint(out, " ", s.name, " |")
	}
	fmt.Fprint(out, "\n|---")
	least := make([][]float64, len(contenders))
	for s, setup := range keySetups {
		fmt.Fprint(out, "|---")
		requests := make([]*http.Request, setup.clients)
		for i := range requests {
			r, err := http.NewRequest("GET", "http://localhost/", nil)
			if err != nil {
				return err
			}
			r.RemoteAddr = address(i)
			requests[i] = r
		}
		handlers := make([]http.Handler, len(contenders))
		for i, c := range contenders {
			wrap, err := c.build([]tier{{"client", setup.perDay, 24 * time.Hour, true}})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			handlers[i] = wrap(hello)
			serveAll(handlers[i], requests, 1, 2*setup.clients)
			least[i] = append(least[i], 0)
		}
		for range rounds {
			for i, h := range handlers {
				used := cpu.Time()
				serveAll(h, requests, setup.goroutines, perKeyRound)
				ns := float64(cpu.Time()-used) / perKeyRound
				if least[i][s] == 0 || ns < least[i][s] {
					least[i][s] = ns
				}
			}
		}
	}
	fmt.Fprintln(out, "|")
	for i, c := range contenders {
		fmt.Fprintf(out, "| %s |", c.name)
		for _, ns := range least[i] {
			fmt.Fprintf(out, " %.0f ns |", ns)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintln(out)
	return nil
}

// serveAll serves n requests from so many goroutines.
func serveAll(h http.Handler, requests []*http.Request, goroutines, n int) {
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			w := &recorder{header: http.Header{}}
			for range n / goroutines {
				clear(w.header)
				w.status = 0
				h.ServeHTTP(w, requests[random.IntN(len(requests))])
			}
		})
	}
	all.Wait()
}

// named returns the contenders of those names.
func named(names []string) []contender {
	return slices.DeleteFunc(slices.Clone(contenders), func(c contender) bool { return !slices.Contains(names, c.name) })
}
