// Command outbound calls an HTTP API that has a limit, in the ways of several libraries,
// and prints what became of it as a table.
//
// The API, on this machine, allows 50 calls/s with a burst of 10, and answers others with
// 429 and Retry-After: 1. 64 goroutines make 500 calls, each until its library gives up;
// then they call again, until they have an answer, and the give-up is counted.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/bench/internal/report"
)

// limit is after which time a row is stopped.
const limit = 2 * time.Minute

func main() {
	match := flag.String("rows", ".", "only those whose name matches this regular expression")
	jitter := flag.Duration("jitter", 0, "of the network, each way: uniform from 0 to this")
	command.Main("outbound", nil, func(ctx context.Context) error {
		only, err := regexp.Compile(*match)
		if err != nil {
			return err
		}
		e := experiment{calls: 500, goroutines: 64, jitter: *jitter}
		var table [][]string
		for _, r := range rows {
			if only.MatchString(r.name) {
				table = append(table, e.run(ctx, r).cells(e))
			}
		}
		fmt.Printf("%s\n%d calls by %d goroutines to a server that allows %d/s with a burst of %d; network jitter %v. "+
			"At best: %.1f s.\n\n",
			report.Machine(), e.calls, e.goroutines, callsPerSecond, burst, e.jitter, e.ideal().Seconds())
		report.Table(os.Stdout, []string{"", ">time", ">time over best", ">429s", ">wasted", ">longest wait", ">connections",
			">give-ups"}, table)
		return ctx.Err()
	})
}

type experiment struct {
	calls, goroutines int
	jitter            time.Duration
}

// ideal is how long it takes at best.
func (e experiment) ideal() time.Duration {
	return time.Duration(max(1, e.calls-burst)) * time.Second / callsPerSecond
}

// An outcome is what became of the calls of a row.
type outcome struct {
	demo.Outcome
	seen, refused int // by the server
	opened        int // connections
	gaveUp        int // how often the library returned something else than an answer
}

func (e experiment) run(ctx context.Context, r row) outcome {
	s := newServer(r.headers, e.jitter)
	defer s.Close()
	base := &http.Transport{MaxIdleConnsPerHost: e.goroutines}
	defer base.CloseIdleConnections()
	do := r.client(base)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var gaveUp atomic.Int64
	o := demo.Work(ctx, r.name, e.goroutines, make([]struct{}, e.calls), func(ctx context.Context, _ struct{}) error {
		for ctx.Err() == nil {
			if call(do, s.URL) == nil {
				return nil
			}
			gaveUp.Add(1)
		}
		return ctx.Err()
	})
	return outcome{o, len(s.limits.Calls()), len(s.limits.Refused()), int(s.opened.Load()), int(gaveUp.Load())}
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
	over := fmt.Sprintf("%.2f", o.Took.Seconds()/e.ideal().Seconds())
	if o.Answered < e.calls {
		over = fmt.Sprintf("(%d answered)", o.Answered)
	}
	wasted := 100 * float64(o.refused) / float64(max(1, o.seen))
	return []string{o.Name, o.Time(false), over, fmt.Sprint(o.refused), fmt.Sprintf("%.1f %%", wasted),
		fmt.Sprintf("%.1f s", o.Longest.Seconds()), fmt.Sprint(o.opened), fmt.Sprint(o.gaveUp)}
}
