package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// The names of the halves.
const unpaced, paced = "unpaced", "paced"

// newClient returns the client of a half. All that pace changes is in here.
func newClient(name string) *http.Client {
	var transport http.RoundTripper = &http.Transport{MaxIdleConnsPerHost: goroutines}
	if name == paced {
		// What the API's documentation says: 50 calls/s, and 10 at one moment, that is 9
		// stored ones and the one that is always prepaid.
		limiter := reserve.Must(pace.NewBursty(callsPerSecond, pace.WithCapacity(burst-1)))
		transport = reserve.Must(outbound.New(transport, limiter))
	}
	return &http.Client{Transport: transport}
}

// A half is what became of the calls.
type half struct {
	name     string
	took     time.Duration
	answered int
	longest  time.Duration // that a goroutine waited for one answer
	seen     []call        // by the API
}

// makeCalls makes all calls, in as many goroutines as there should be, or those
// for which there is time.
func makeCalls(ctx context.Context, name, url string) (half, error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	client := newClient(name)
	defer client.CloseIdleConnections()
	todo := make(chan struct{}, calls)
	for range calls {
		todo <- struct{}{}
	}
	close(todo)

	h := half{name: name}
	var mu sync.Mutex // guards h
	var all sync.WaitGroup
	bar := newProgress(name)
	begin := time.Now()
	for range goroutines {
		all.Go(func() {
			for range todo {
				since := time.Now()
				err := callUntilAnswered(ctx, client, url)
				mu.Lock()
				h.longest = max(h.longest, time.Since(since))
				if err == nil {
					h.answered++
					bar.done(h.answered)
				}
				mu.Unlock()
				switch {
				case errors.Is(err, context.DeadlineExceeded):
					return
				case err != nil:
					fail(err)
					return
				}
			}
		})
	}
	all.Wait()
	h.took = time.Since(begin)
	bar.end()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return h, err
	}
	return h, nil
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

func (h half) row() []string {
	refused := 0
	for _, c := range h.seen {
		if c.refused {
			refused++
		}
	}
	took := fmt.Sprintf("%.1f s", h.took.Seconds())
	if h.answered < calls {
		took = "stopped after " + took
	}
	return []string{
		h.name,
		took,
		fmt.Sprint(h.answered),
		fmt.Sprint(len(h.seen)),
		fmt.Sprint(refused),
		fmt.Sprintf("%.0f %%", 100*float64(refused)/float64(max(1, len(h.seen)))),
		fmt.Sprintf("%.1f s", h.longest.Seconds()),
	}
}
