// Command outbound calls an HTTP API that has a limit, in the ways of several libraries,
// and prints what became of it as a table.
//
// The API, on this machine, allows 50 calls/s with a burst of 10, and answers others with
// 429 and Retry-After: 1. 64 goroutines make 500 calls, each until its library gives up;
// then they call again, until they have an answer, and the give-up is counted.
package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	match := flag.String("rows", ".", "only those whose name matches this regular expression")
	jitter := flag.Duration("jitter", 0, "of the network, each way: uniform from 0 to this")
	jobs := flag.Int("jobs", 500, "how many calls are made")
	goroutines := flag.Int("goroutines", 64, "by how many goroutines")
	limit := flag.Duration("limit", 2*time.Minute, "a row is stopped after this")
	flag.Parse()
	only, err := regexp.Compile(*match)
	if err != nil || flag.NArg() > 0 || *jobs < 1 || *goroutines < 1 {
		fmt.Fprintln(os.Stderr, "outbound: bad arguments; see -help")
		os.Exit(2)
	}
	e := experiment{jobs: *jobs, goroutines: *goroutines, jitter: *jitter, limit: *limit}
	var table [][]string
	for _, r := range rows {
		if !only.MatchString(r.name) {
			continue
		}
		o := e.run(r)
		fmt.Fprintf(os.Stderr, "%s: %.1f s\n", r.name, o.took.Seconds())
		table = append(table, o.cells(e))
	}
	fmt.Printf("%s\n%d calls by %d goroutines to a server that allows %d/s with a burst of %d; network jitter %v. "+
		"At best: %.1f s.\n\n", report.Machine(), e.jobs, e.goroutines, callsPerSecond, burst, e.jitter, e.ideal().Seconds())
	report.Table(os.Stdout, []string{"", ">time", ">time over best", ">429s", ">wasted", ">longest wait", ">connections",
		">give-ups"}, table)
}

type experiment struct {
	jobs, goroutines int
	jitter, limit    time.Duration
}

// ideal is how long it takes at best.
func (e experiment) ideal() time.Duration {
	return time.Duration(max(1, e.jobs-burst)) * time.Second / callsPerSecond
}

// An outcome is what became of the calls of a row.
type outcome struct {
	name          string
	took, longest time.Duration
	seen, refused int // by the server
	opened        int // connections
	answered      int
	gaveUp        int // how often the library returned something else than an answer
}

func (e experiment) run(r row) outcome {
	s := newServer(r.headers, e.jitter)
	defer s.Close()
	base := &http.Transport{MaxIdleConnsPerHost: e.goroutines}
	defer base.CloseIdleConnections()
	do := r.client(base)

	o := outcome{name: r.name}
	var mu sync.Mutex // guards o
	todo := make(chan struct{}, e.jobs)
	for range e.jobs {
		todo <- struct{}{}
	}
	close(todo)
	begin := time.Now()
	var all sync.WaitGroup
	for range e.goroutines {
		all.Go(func() {
			for range todo {
				since := time.Now()
				for time.Since(begin) < e.limit {
					err := call(do, s.URL)
					mu.Lock()
					o.longest = max(o.longest, time.Since(since))
					if err == nil {
						o.answered++
					} else {
						o.gaveUp++
					}
					mu.Unlock()
					if err == nil {
						break
					}
				}
			}
		})
	}
	all.Wait()
	o.took = time.Since(begin)
	o.seen, o.refused, o.opened = len(s.limits.Calls()), len(s.limits.Refused()), int(s.opened.Load())
	return o
}

// call makes one call.
func call(do doer, url string) error {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return errRefused
	}
	return nil
}

func (o outcome) cells(e experiment) []string {
	over := fmt.Sprintf("%.2f", o.took.Seconds()/e.ideal().Seconds())
	if o.answered < e.jobs {
		over = fmt.Sprintf("(%d answered)", o.answered)
	}
	return []string{
		o.name,
		fmt.Sprintf("%.1f s", o.took.Seconds()),
		over,
		fmt.Sprint(o.refused),
		fmt.Sprintf("%.1f %%", 100*float64(o.refused)/float64(max(1, o.seen))),
		fmt.Sprintf("%.1f s", o.longest.Seconds()),
		fmt.Sprint(o.opened),
		fmt.Sprint(o.gaveUp),
	}
}
