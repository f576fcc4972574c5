// Command classes measures how long 100 calls of people wait among 2,000 calls of a batch: first come, first served;
// with package fair; and with package fair through an HTTP transport. It runs in real time, prints a Markdown table
// and draws a picture.
//
// All calls of the batch come at once. A call of people comes every 37 ms. A call takes 1 to 3 permits, of 1,000 a
// second.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/command"
	"github.com/nextfree/pace/bench/internal/report"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
)

func main() {
	out := flag.String("out", "out/classes.png", "the picture's file")
	command.Main("classes", nil, func(context.Context) error {
		return command.Draw(os.Stdout, *out, func() (func(io.Writer) error, error) {
			results, err := table(os.Stdout)
			return func(w io.Writer) error { return drawWaits(w, results) }, err
		})
	})
}

// What the limiter allows, and the calls.
const (
	rate   = 1000 // permits a second
	batch  = 2000 // calls
	people = 100
	every  = 37 * time.Millisecond
	burst  = 10 * time.Millisecond // makes up for callers that wake late
)

var classes = []fair.Class{{Name: "people", Priority: 1}, {Name: "batch"}}

// An acquirer waits for n permits in the name of a class.
type acquirer func(ctx context.Context, n int) error

// contenders are what is compared, by name.
var contenders = []struct {
	name string
	make func() (acquirer, error)
}{
	{"first come, first served", func() (acquirer, error) {
		l, err := pace.NewBursty(rate, pace.WithBurst(burst))
		return func(ctx context.Context, n int) error {
			_, err := l.Acquire(ctx, n)
			return err
		}, err
	}},
	{"package fair", func() (acquirer, error) {
		q, err := fair.New(reserve.Must(pace.NewBursty(rate, pace.WithBurst(burst))), classes)
		return func(ctx context.Context, n int) error {
			_, err := q.Acquire(ctx, n)
			return err
		}, err
	}},
	{"outbound.WithClasses", func() (acquirer, error) {
		cost := func(r *http.Request) int { return len(r.URL.Path) }
		t, err := outbound.New(answering{}, nil, outbound.WithLimit(outbound.Limit{
			Limiter: reserve.Must(pace.NewBursty(rate, pace.WithBurst(burst))), Cost: cost,
		}), outbound.WithClasses(nil, classes...))
		return func(ctx context.Context, n int) error {
			r, err := http.NewRequestWithContext(ctx, "GET", "http://server/"+strings.Repeat("x", n-1), nil)
			if err == nil {
				_, err = t.RoundTrip(r)
			}
			return err
		}, err
	}},
}

// answering is a server that answers at once.
type answering struct{}

func (answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// A result is what a contender reached.
type result struct {
	name  string
	calls []call // of people
	end   time.Duration
}

// A call says when it came, and how long it waited.
type call struct{ came, waited time.Duration }

func measure(name string, acquire acquirer) (r result, err error) {
	r.name = name
	begin := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	one := func(class string, n int) {
		came := time.Now()
		e := acquire(fair.With(context.Background(), class, ""), n)
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(err, e)
		if class == "people" {
			r.calls = append(r.calls, call{came.Sub(begin), time.Since(came)})
		}
	}
	for i := range batch {
		all.Go(func() { one("batch", 1+i%3) })
	}
	for i := range people {
		time.Sleep(time.Until(begin.Add(time.Duration(i+1) * every)))
		all.Go(func() { one("people", 1+i%3) })
	}
	all.Wait()
	r.end = time.Since(begin)
	return r, err
}

// wait returns a percentile of the waits.
func (r *result) wait(percent int) time.Duration {
	var waits []time.Duration
	for _, c := range r.calls {
		waits = append(waits, c.waited)
	}
	slices.Sort(waits)
	return waits[(len(waits)-1)*percent/100]
}

// table measures all contenders, and prints how long the calls of people waited.
func table(w io.Writer) (results []result, err error) {
	fmt.Fprintf(w, "%s. %d calls of people among %d of a batch, 1 to 3 permits each, at %d permits a second.\n\n",
		report.Machine(), people, batch, rate)
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond)) }
	var rows [][]string
	for _, c := range contenders {
		acquire, err := c.make()
		if err != nil {
			return nil, err
		}
		r, err := measure(c.name, acquire)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
		rows = append(rows, []string{r.name, ms(r.wait(50)), ms(r.wait(99)), ms(r.wait(100)),
			fmt.Sprintf("%.2f", r.end.Seconds())})
	}
	report.Table(w, []string{"order", ">people wait p50, ms", ">p99, ms", ">worst, ms", ">all done after, s"}, rows)
	return results, nil
}
