// Command fault does to a Redis, a PostgreSQL and a NATS what a bad day does, while limiters use them, and says what
// their callers saw. Each fault meets the three ways of failing (FailClosed, FailOpen, Local), each with four
// processes' limiters on one key.
//
//	go run ./fault                        # in bench/shared: all faults, about a minute
//	go run ./fault -only cut,reset        # some
//	go run ./fault -server valkey-server  # another server from PATH
//	go run ./fault -crowd                 # no faults: one hot key of 1, 8 and 32 processes, in each store
//
// It needs redis-server and redis-cli, and PostgreSQL in /usr/lib/postgresql. The exit status is 1 if a row misses by a
// wide margin: see row.misses.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/nextfree/pace/bench/internal/report"
)

func main() {
	log.SetFlags(0)
	program := flag.String("server", "redis-server", "the server's program")
	only := flag.String("only", "", "names of faults, or beginnings of them, separated by commas; default: all")
	atOnce := flag.Int("parallel", 2, "how many faults at a time")
	nats := flag.String("nats", "", "be a NATS server: its address and folder, separated by a comma (internal)")
	crowd := flag.Bool("crowd", false, "instead of faults, measure one hot key of many processes")
	flag.Parse()
	if *nats != "" {
		serveNATS(*nats)
		return
	}
	redis.SetLogger(quiet{}) // of connections that break
	var chosen []fault
	for _, f := range faults() {
		begins := func(name string) bool { return strings.HasPrefix(f.name, name) }
		if *only == "" || slices.ContainsFunc(strings.Split(*only, ","), begins) {
			chosen = append(chosen, f)
		}
	}
	if len(chosen) == 0 {
		log.Fatalf("fault: no fault is called %q", *only)
	}
	if *crowd {
		for _, f := range chosen {
			if f.name != "none" && !strings.HasSuffix(f.name, ": none") {
				continue
			}
			if err := crowds(f, *program); err != nil {
				log.Fatalf("fault: %s: %v", f.name, err)
			}
		}
		return
	}
	results := make([]chan []row, len(chosen))
	slots := make(chan struct{}, max(1, *atOnce))
	for i, f := range chosen {
		results[i] = make(chan []row, 1)
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			rows, err := experiment(f, *program)
			if err != nil {
				log.Fatalf("fault: %s: %v", f.name, err)
			}
			results[i] <- rows
		}()
	}
	missed := false
	var table [][]string
	for i, rows := range results {
		for _, r := range <-rows {
			table = append(table, r.cells())
			missed = missed || r.misses(wide) != ""
		}
		fmt.Fprintf(os.Stderr, "fault: %s is over (%d of %d)\n", chosen[i].name, i+1, len(chosen))
	}
	report.Table(os.Stdout, heading, table)
	if missed {
		os.Exit(1)
	}
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// experiment runs one fault, and counts what is left of it.
func experiment(f fault, program string) (rows []row, err error) {
	done := make(chan struct{})
	go pprof.Do(context.Background(), pprof.Labels("fault", f.name), func(context.Context) {
		defer close(done)
		rows, err = meet(f, program)
	})
	<-done
	left := remaining(f.name)
	for i := range rows {
		rows[i].goroutines = left
	}
	return rows, err
}

// meet lets the callers of all three ways of failing call before a fault, during it and after it.
func meet(f fault, program string) (rows []row, err error) {
	w, err := f.world(program)
	defer w.close()
	if err != nil {
		return nil, err
	}
	var groups []*group
	stop := make(chan struct{})
	var all sync.WaitGroup
	var stall time.Duration
	all.Go(func() { stall = longestStall(stop) })
	for _, m := range modes {
		g := newGroup(m, w)
		groups = append(groups, g)
		all.Go(func() { g.run(stop) })
	}
	time.Sleep(before)
	begun := time.Now()
	err = f.begin(w)
	if err == nil && f.pass == nil {
		time.Sleep(during)
	}
	if err == nil && f.pass != nil {
		err = f.pass(w)
	}
	ended := time.Now()
	time.Sleep(after)
	close(stop)
	all.Wait()
	for _, g := range groups {
		r := g.judge(f, begun, ended)
		r.stall = stall
		rows = append(rows, r)
	}
	return rows, err
}

// longestStall returns by how much a timer of this machine is late at most, until stop is closed: that much is not the
// limiter's doing.
func longestStall(stop <-chan struct{}) (longest time.Duration) {
	for {
		begin := time.Now()
		select {
		case <-stop:
			return longest
		case <-time.After(time.Millisecond):
			longest = max(longest, time.Since(begin)-time.Millisecond)
		}
	}
}

// remaining returns how many goroutines of a fault's are left when they have had time to end.
func remaining(name string) (left int) {
	for range 100 {
		var all strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
		left = 0
		for part := range strings.SplitSeq(all.String(), "\n\n") {
			if strings.Contains(part, fmt.Sprintf("%q:%q", "fault", name)) {
				n := 0
				_, _ = fmt.Sscanf(part, "%d @", &n)
				left += n
			}
		}
		if left == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}
