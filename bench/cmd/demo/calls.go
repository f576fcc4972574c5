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
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// xtime is the part that waits for golang.org/x/time/rate before each attempt, at the right rate.
const xtime = "x/time/rate"

// newClient returns the client of a part. All that pace changes is in here.
func newClient(name string) *http.Client {
	var transport http.RoundTripper = &http.Transport{MaxIdleConnsPerHost: goroutines}
	switch name {
	case xtime:
		transport = waiting{transport, rate.NewLimiter(callsPerSecond, burst)}
	case demo.Paced:
		// What the API's documentation says: 50 calls/s, and 10 at one moment, that is 9
		// stored ones and the one that is always prepaid.
		limiter := reserve.Must(pace.NewBursty(callsPerSecond, pace.WithCapacity(burst-1)))
		transport = reserve.Must(outbound.New(transport, limiter))
	}
	return &http.Client{Transport: transport}
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
	seen []demo.Call // by the API
}

// makeCalls makes all calls, or those for which there is time. An error that is no refusal ends them.
func makeCalls(ctx context.Context, name, url string) (half, error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	client := newClient(name)
	defer client.CloseIdleConnections()
	o := demo.Work(ctx, name, goroutines, make([]struct{}, calls), func(ctx context.Context, _ struct{}) error {
		err := callUntilAnswered(ctx, client, url)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			fail(err)
		}
		return err
	})
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return half{}, err
	}
	return half{Outcome: o}, nil
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

// Row is the half's in the table.
func (h half) Row() []string {
	refused := 0
	for _, c := range h.seen {
		if c.Refused {
			refused++
		}
	}
	return []string{
		h.Name,
		h.Time(h.Answered < calls),
		fmt.Sprint(h.Answered),
		fmt.Sprint(len(h.seen)),
		fmt.Sprint(refused),
		fmt.Sprintf("%.0f %%", 100*float64(refused)/float64(max(1, len(h.seen)))),
		fmt.Sprintf("%.1f s", h.Longest.Seconds()),
	}
}
