package a

import (
	"context"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nextfree/pace"
	body "github.com/nextfree/pace/reserve/plug/xtime/rate"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
)

type client struct {
	http *http.Client
	lim  *rate.Limiter
	stub interface {
		Get(ctx context.Context, in *string, opts ...grpc.CallOption) (*string, error)
	}
}

func (c *client) fixed(ctx context.Context, req *http.Request) (resp *http.Response, err error) {
	if err := c.lim.Wait(ctx); err != nil { // want `Wait before a loop of attempts`
		return nil, err
	}
	for range 3 {
		resp, err = c.http.Do(req)
		if err == nil {
			break
		}
		time.Sleep(time.Second)
	}
	return resp, err
}

func (c *client) continues(ctx context.Context, lim *body.Limiter, url string) (*http.Response, error) {
	err := lim.WaitN(ctx, 1) // want `Wait before a loop of attempts`
	if err != nil {
		return nil, err
	}
	for attempt := 0; attempt < 5; attempt++ {
		resp, err := http.Get(url)
		if err != nil || resp.StatusCode == 429 {
			time.Sleep(time.Second)
			continue
		}
		return resp, nil
	}
	return nil, err
}

func (c *client) asks(ctx context.Context, lim *pace.Limiter, req *http.Request) (*http.Response, error) {
	if _, err := lim.Acquire(ctx, 1); err != nil { // want `Wait before a loop of attempts`
		return nil, err
	}
	for {
		resp, err := c.send(req)
		if !again(resp, err) {
			return resp, err
		}
	}
}

func again(*http.Response, error) bool { return false }

func (c *client) send(req *http.Request) (*http.Response, error) { return c.http.Do(req) }

func (c *client) grpc(ctx context.Context, in *string) (out *string, err error) {
	if err := c.lim.Wait(ctx); err != nil { // want `Wait before a loop of attempts`
		return nil, err
	}
	for i := range 3 {
		if out, err = c.stub.Get(ctx, in); err == nil {
			return out, nil
		}
		time.Sleep(time.Duration(i) * time.Second)
	}
	return nil, err
}

func (c *client) library(ctx context.Context, req *http.Request) (*http.Response, error) {
	if err := c.lim.Wait(ctx); err != nil { // want `Wait before a loop of attempts`
		return nil, err
	}
	return backoff.Retry(ctx, func() (*http.Response, error) { return c.http.Do(req) })
}

// What is right.

func (c *client) inside(ctx context.Context, req *http.Request) (resp *http.Response, err error) {
	for range 3 {
		if err := c.lim.Wait(ctx); err != nil {
			return nil, err
		}
		if resp, err = c.http.Do(req); err == nil {
			return resp, nil
		}
	}
	return nil, err
}

// Of the job, and of each attempt.
func (c *client) both(ctx context.Context, jobs *rate.Limiter, req *http.Request) (resp *http.Response, err error) {
	if err := jobs.Wait(ctx); err != nil {
		return nil, err
	}
	for range 3 {
		if resp, err = c.paced(req); err == nil {
			return resp, nil
		}
	}
	return nil, err
}

func (c *client) paced(req *http.Request) (*http.Response, error) {
	if err := c.lim.Wait(req.Context()); err != nil {
		return nil, err
	}
	return c.http.Do(req)
}

// As many permits as requests.
func (c *client) several(ctx context.Context, urls []string) error {
	if err := c.lim.WaitN(ctx, len(urls)); err != nil {
		return err
	}
	for i := range len(urls) {
		if _, err := http.Get(urls[i]); err != nil {
			continue
		}
	}
	return nil
}

// A job of several requests.
func (c *client) data(ctx context.Context, urls []string) error {
	if err := c.lim.Wait(ctx); err != nil {
		return err
	}
	for _, url := range urls {
		if _, err := http.Get(url); err != nil {
			continue
		}
	}
	return nil
}

// It is the request that is waited for; the loop reads.
func (c *client) stream(ctx context.Context, req *http.Request) error {
	if err := c.lim.Wait(ctx); err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	buffer := make([]byte, 100)
	for {
		if _, err := resp.Body.Read(buffer); err != nil {
			return err
		}
		if resp.Header.Get("x") == "" {
			return nil
		}
	}
}

// Pages: it ends with an error.
func (c *client) pages(ctx context.Context, req *http.Request) error {
	if err := c.lim.Wait(ctx); err != nil {
		return err
	}
	for {
		if _, err := c.http.Do(req); err != nil {
			return err
		}
	}
}

func (c *client) pacedLibrary(ctx context.Context, jobs *rate.Limiter, req *http.Request) (*http.Response, error) {
	if err := jobs.Wait(ctx); err != nil {
		return nil, err
	}
	return backoff.Retry(ctx, func() (*http.Response, error) { return c.paced(req) })
}
