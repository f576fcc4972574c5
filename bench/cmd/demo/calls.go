package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/bench/internal/demo"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// The parts. x/time/rate waits for a permit before each attempt, at the right rate.
const (
	unlimited = "no limiter"
	even      = "x/time/rate, burst 1"
	bursts    = "x/time/rate, burst 100"
	paced     = "pace"
	threeTold = "x/time/rate in each"
	threePace = "pace in each, told nothing"
)

// newClients returns the clients of a part, one for each program. All that pace changes is in here.
func newClients(name string) (clients []*http.Client) {
	programs := 1
	if name == threeTold || name == threePace {
		programs = 3
	}
	for range programs {
		var transport http.RoundTripper = &http.Transport{MaxIdleConnsPerHost: goroutines}
		switch name {
		case even, threeTold:
			transport = waiting{transport, rate.NewLimiter(callsPerSecond, 1)}
		case bursts:
			transport = waiting{transport, rate.NewLimiter(callsPerSecond, allowed)}
		case paced:
			transport = pace.Must(outbound.New(transport, pace.Must(window.New(allowed, per))))
		case threePace:
			transport = pace.Must(outbound.New(transport, nil, outbound.Adaptive()))
		}
		clients = append(clients, &http.Client{Transport: transport})
	}
	return clients
}

// waiting waits for a permit before each request.
type waiting struct {
	http.RoundTripper
	limiter *rate.Limiter
}

func (w waiting) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.limiter.Wait(r.Context()); err != nil {
		return nil, err
	}
	return w.RoundTripper.RoundTrip(r)
}

// A half is what became of the calls of a part.
type half struct {
	demo.Outcome
	calls int
	seen  []demo.Call // by the API
}

// makeCalls makes all calls, or those for which there is time. An error that is no refusal ends them.
func makeCalls(ctx context.Context, name, url string, calls int) (half, error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	clients := newClients(name)
	jobs := make([]*http.Client, calls)
	for i := range jobs {
		jobs[i] = clients[i%len(clients)]
	}
	o := demo.Work(ctx, name, goroutines, jobs, func(ctx context.Context, client *http.Client) error {
		err := callUntilAnswered(ctx, client, url)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			fail(err)
		}
		return err
	})
	for _, client := range clients {
		client.CloseIdleConnections()
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return half{}, err
	}
	return half{Outcome: o, calls: calls}, nil
}

// callUntilAnswered calls the API until it does not refuse.
func callUntilAnswered(ctx context.Context, client *http.Client, url string) error {
	for {
		retryAfter, err := callOnce(ctx, client, url)
		if err != nil {
			return err
		}
		if retryAfter == 0 {
			return nil
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// callOnce calls the API, and returns how long it wants to be left alone; 0 if it
// has answered.
func callOnce(ctx context.Context, client *http.Client, url string) (retryAfter time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // so that the connection can be used again
		return 0, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return 0, nil
	case http.StatusTooManyRequests:
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || seconds < 1 {
			return 0, fmt.Errorf("the API answered 429 with Retry-After: %q", resp.Header.Get("Retry-After"))
		}
		return time.Duration(seconds) * time.Second, nil
	default:
		return 0, fmt.Errorf("the API answered %s", resp.Status)
	}
}

// refused counts the calls that the API refused.
func (h half) refused() (n int) {
	for _, c := range h.seen {
		if c.Refused {
			n++
		}
	}
	return n
}

// first returns when the API had answered that many calls.
func (h half) first(n int) time.Duration {
	for _, c := range h.seen {
		if !c.Refused {
			if n--; n == 0 {
				return c.At
			}
		}
	}
	return h.Took
}

// Row is the half's in the table.
func (h half) Row() []string {
	return []string{
		h.Name,
		fmt.Sprintf("%.1f s", h.first(allowed).Seconds()),
		h.Time(h.Answered < h.calls),
		fmt.Sprint(h.Answered),
		fmt.Sprint(len(h.seen)),
		fmt.Sprint(h.refused()),
		fmt.Sprintf("%.0f %%", 100*float64(h.refused())/float64(max(1, len(h.seen)))),
	}
}
