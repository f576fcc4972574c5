package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/paceprom"
	"github.com/nextfree/pace/reserve/shared"
)

// work has limiters of every kind at work for a time, with more callers in the middle third.
func work(metrics *paceprom.Collector, d time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()

	// A server that allows 40 calls a second, in the last third 15, and a client that finds that
	// out.
	theirs := reserve.Must(pace.NewTokenBucket(40, 20))
	limits := reserve.Must(inbound.New([]inbound.Tier{inbound.GlobalBy("everybody", theirs)}))
	server := httptest.NewServer(limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	calls := reserve.Must(pace.NewBursty(80, pace.WithBurst(500*time.Millisecond)))
	hooks, err := metrics.Outbound("api", outbound.Hooks{})
	if err != nil {
		return err
	}
	paced := reserve.Must(outbound.New(nil, calls, outbound.Adaptive(), outbound.WithHooks(hooks)))
	client := &http.Client{Transport: paced, Timeout: time.Second}
	jobs := reserve.Must(pace.NewTokenBucket(20, 40))
	fleet := reserve.Must(shared.New(absent{}, "fleet", reserve.Must(pace.Bursty(10)), shared.FailOpen()))
	if err := errors.Join(metrics.Limiter("calls", calls), metrics.Limiter("jobs", jobs),
		metrics.Inbound("server", limits), metrics.Shared("fleet", fleet)); err != nil {
		return err
	}

	var all sync.WaitGroup
	for caller := range 64 {
		all.Go(func() {
			begin, end := time.Duration(0), d
			if caller >= 16 {
				begin, end = d/3, 2*d/3
			}
			sleep(ctx, begin)
			for until := time.Now().Add(end - begin); time.Now().Before(until) && ctx.Err() == nil; {
				call(ctx, client, server.URL)
			}
		})
	}
	all.Go(func() { tryJobs(ctx, jobs, d) })
	all.Go(func() {
		sleep(ctx, 2*d/3)
		_ = theirs.SetRate(15)
	})
	all.Go(func() {
		for ctx.Err() == nil {
			_, _ = fleet.Acquire(ctx, 1)
			sleep(ctx, 200*time.Millisecond)
		}
	})
	all.Wait()
	client.CloseIdleConnections()
	return nil
}

func call(ctx context.Context, client *http.Client, url string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		panic(err) // the URL is the server's own
	}
	response, err := client.Do(r)
	if err != nil {
		sleep(ctx, 50*time.Millisecond) // it was refused at once
		return
	}
	_ = response.Body.Close()
}

// tryJobs asks for 30 permits a second, except in the middle third; in the last, half of them are
// given back.
func tryJobs(ctx context.Context, jobs *reserve.Limiter, d time.Duration) {
	begin := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		switch at := time.Since(begin); {
		case at < d/3:
			jobs.TryAcquire(1)
		case at > 2*d/3:
			r, err := jobs.ReserveWithin(ctx, 1, time.Second)
			if err == nil && i%2 == 0 {
				r.Cancel()
			}
		}
		sleep(ctx, time.Second/30)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// absent is a Redis that is not there.
type absent struct{}

func (absent) Eval(context.Context, *shared.Script, string, []byte) ([]byte, error) {
	return nil, errors.New("connection refused")
}
