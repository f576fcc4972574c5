package main

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/nextfree/pace/bench/internal/cpu"
	"github.com/nextfree/pace/bench/internal/report"
)

// recorder is a ResponseWriter whose own cost is next to nothing, so that what is
// measured is the middleware's. Each request begins with an empty header, as on a connection.
type recorder struct {
	header http.Header
	status int
}

func (w *recorder) Header() http.Header { return w.header }
func (w *recorder) WriteHeader(s int)   { w.status = s }
func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return len(p), nil
}

// hello is the handler that is protected.
var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

// address returns the i-th client's.
func address(i int) string {
	return fmt.Sprintf("%d.%d.%d.%d:4711", 11+i>>24, i>>16&255, i>>8&255, i&255)
}

// handlerRound is how long a round of one contender takes.
const handlerRound = 200 * time.Millisecond

// cost is the price of one request.
type cost struct {
	ns            float64
	allocs, bytes int64
}

var global = tier{"global", 1_000_000_000, time.Minute, false}

// setups are the tiers that handlers are measured with. Clients that come often have
// used some of their limit; for clients that come seldom it is full again each time, and pace has forgotten
// them meanwhile. In the last one no request passes.
var setups = []struct {
	name  string
	tiers []tier
	want  int
}{
	{"per client, often", []tier{{"client", 1_000_000, 24 * time.Hour, true}}, http.StatusOK},
	{"per client, seldom", []tier{{"client", 1_000_000, time.Minute, true}}, http.StatusOK},
	{"per client, often, and global", []tier{{"client", 1_000_000, 24 * time.Hour, true}, global}, http.StatusOK},
	{"per client, seldom, and global", []tier{{"client", 1_000_000, time.Minute, true}, global}, http.StatusOK},
	{"refused", []tier{{"client", 1, time.Hour, true}}, http.StatusTooManyRequests},
}

// measureHandlers measures each contender in each set-up, in rounds, so that a
// noisy moment does not hit one of them alone, and prints the medians.
func measureHandlers(out io.Writer, rounds int) error {
	fmt.Fprintf(out, "## Processor time and memory of a request (1024 clients in turn; median of %d rounds)\n\n", rounds)
	results := make([][][]cost, len(contenders))
	for i := range results {
		results[i] = make([][]cost, len(setups))
	}
	for range rounds {
		for s, setup := range setups {
			for i, c := range contenders {
				got, err := measureHandler(c, setup.tiers, setup.want)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.name, setup.name, err)
				}
				results[i][s] = append(results[i][s], got)
			}
		}
	}
	header, rows := []string{""}, make([][]string, len(contenders))
	for _, s := range setups {
		header = append(header, ">"+s.name)
	}
	for i, c := range contenders {
		rows[i] = []string{c.name}
		for _, all := range results[i] {
			slices.SortFunc(all, func(a, b cost) int { return int(a.ns - b.ns) })
			m := all[len(all)/2]
			rows[i] = append(rows[i], fmt.Sprintf("%.0f ns, %d allocs, %d B", m.ns, m.allocs, m.bytes))
		}
	}
	report.Table(out, header, rows)
	fmt.Fprintln(out)
	return nil
}

func measureHandler(c contender, tiers []tier, want int) (cost, error) {
	wrap, err := c.build(tiers)
	if err != nil {
		return cost{}, err
	}
	h := wrap(hello)
	const clients = 1024
	requests := make([]*http.Request, clients)
	for i := range requests {
		if requests[i], err = http.NewRequest("GET", "http://localhost/", nil); err != nil {
			return cost{}, err
		}
		requests[i].RemoteAddr = address(i)
	}
	w := &recorder{header: http.Header{}}
	serve := func(r *http.Request) int {
		clear(w.header)
		w.status = 0
		h.ServeHTTP(w, r)
		return w.status
	}
	for _, r := range requests { // from now on all clients are known, and requests that can be refused are
		serve(r)
	}
	if got := serve(requests[0]); got != want && c.name != bare {
		return cost{}, fmt.Errorf("answered %d, want %d", got, want)
	}
	var before, after runtime.MemStats
	wrong, n := 0, 0
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin, used := time.Now(), cpu.Time()
	for time.Since(begin) < handlerRound {
		for _, r := range requests {
			if serve(r) != want {
				wrong++
			}
		}
		n += clients
	}
	used = cpu.Time() - used
	runtime.ReadMemStats(&after)
	if wrong > n/100 && c.name != bare {
		return cost{}, fmt.Errorf("%d of %d requests were not answered %d", wrong, n, want)
	}
	return cost{
		ns:     float64(used) / float64(n),
		allocs: int64(after.Mallocs-before.Mallocs) / int64(n),
		bytes:  int64(after.TotalAlloc-before.TotalAlloc) / int64(n),
	}, nil
}
