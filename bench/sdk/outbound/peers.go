package main

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/time/rate"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// A row is one way to call an API that has a limit.
type row struct {
	name    string
	headers bool // the server sends the draft's headers
	client  func(base http.RoundTripper) doer
}

// A doer makes one call, and tries again as its library does.
type doer func(*http.Request) (*http.Response, error)

var rows = []row{
	{"go-retryablehttp, unpaced", false, retryable(nil)},
	{"go-retryablehttp, x/time/rate 50/s", false, retryable(rate.NewLimiter(50, 1))},
	{"go-retryablehttp, x/time/rate 80/s", false, retryable(rate.NewLimiter(80, burst))},
	{"aws-sdk-go-v2, adaptive", false, adaptiveAWS()},
	{"failsafe-go, retries", false, failsafeHTTP()},
	{"failsafe-go, retries, smooth 50/s", false, failsafeHTTP(ratelimiter.NewSmooth[*http.Response](50, time.Second))},
	{"failsafe-go, retries, smooth 80/s", false, failsafeHTTP(ratelimiter.NewSmooth[*http.Response](80, time.Second))},
	{"pace, 50/s", false, paced(50)},
	{"pace, 80/s, Adaptive", false, paced(80, outbound.Adaptive())},
	{"pace, 80/s, Adaptive, PauseRefused", false, paced(80, outbound.Adaptive(), outbound.PauseRefused())},
	{"pace, no rate, Adaptive, headers", true, paced(math.Inf(1), outbound.Adaptive())},
	{"pace, no rate, Adaptive, no headers, PauseRefused", false,
		paced(math.Inf(1), outbound.Adaptive(), outbound.PauseRefused())},
}

// paced is what this program is about: an ordinary client with a pace transport. Its limiter
// saves up nothing.
func paced(permitsPerSecond float64, opts ...outbound.Option) func(http.RoundTripper) doer {
	return func(base http.RoundTripper) doer {
		limiter := reserve.Must(pace.NewBursty(permitsPerSecond, pace.WithBurst(0)))
		opts := append(opts, outbound.WithRetries(100))
		client := &http.Client{Transport: reserve.Must(outbound.New(base, limiter, opts...))}
		return client.Do
	}
}

// retryable is go-retryablehttp as it comes, but without its log. A limiter is asked
// before each attempt.
func retryable(limiter *rate.Limiter) func(http.RoundTripper) doer {
	return func(base http.RoundTripper) doer {
		client := retryablehttp.NewClient()
		client.Logger = nil
		client.HTTPClient = &http.Client{Transport: base}
		if limiter != nil {
			client.HTTPClient.Transport = waiting{limiter, base}
		}
		return client.StandardClient().Do
	}
}

type waiting struct {
	limiter *rate.Limiter
	base    http.RoundTripper
}

func (w waiting) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.limiter.Wait(r.Context()); err != nil {
		return nil, err
	}
	return w.base.RoundTrip(r)
}

// failsafeHTTP is failsafe-go with its retry policy for HTTP, and perhaps a limiter inside.
func failsafeHTTP(limiters ...ratelimiter.RateLimiter[*http.Response]) func(http.RoundTripper) doer {
	return func(base http.RoundTripper) doer {
		policies := []failsafe.Policy[*http.Response]{failsafehttp.NewRetryPolicyBuilder().Build()}
		for _, l := range limiters {
			base = failsafeWaiting{l, base}
		}
		client := &http.Client{Transport: failsafehttp.NewRoundTripper(base, policies...)}
		return client.Do
	}
}

type failsafeWaiting struct {
	limiter ratelimiter.RateLimiter[*http.Response]
	base    http.RoundTripper
}

func (w failsafeWaiting) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.limiter.AcquirePermit(r.Context()); err != nil {
		return nil, err
	}
	return w.base.RoundTrip(r)
}

// adaptiveAWS makes attempts as the SDK's own middleware does, with its adaptive mode.
func adaptiveAWS() func(http.RoundTripper) doer {
	return func(base http.RoundTripper) doer {
		mode := retry.NewAdaptiveMode()
		client := &http.Client{Transport: base}
		return func(r *http.Request) (*http.Response, error) { return attempts(mode, client, r) }
	}
}

func attempts(mode *retry.AdaptiveMode, client *http.Client, r *http.Request) (*http.Response, error) {
	releaseRetry := func(error) error { return nil }
	for attempt := 1; ; attempt++ {
		release, err := mode.GetAttemptToken(r.Context())
		if err != nil {
			return nil, err
		}
		response, err := client.Do(r)
		if err == nil && response.StatusCode == http.StatusTooManyRequests {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
			err = throttled{}
		}
		release(err)
		releaseRetry(err)
		if err == nil {
			return response, nil
		}
		if attempt >= mode.MaxAttempts() || !mode.IsErrorRetryable(err) {
			return nil, err
		}
		if releaseRetry, err = mode.GetRetryToken(r.Context(), err); err != nil {
			return nil, err
		}
		delay, err := mode.RetryDelay(attempt, throttled{})
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	}
}

// throttled is 429 as the SDK knows it.
type throttled struct{}

func (throttled) Error() string     { return "throttled" }
func (throttled) ErrorCode() string { return "ThrottlingException" }

var errRefused = errors.New("refused in the end")
