package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/nextfree/pace/reserve/outbound/llm"
)

// A client is a way to make the calls: what stands between openai-go and the server.
type client struct {
	name   string
	jitter time.Duration // between the two, uniform from 0
	wrap   func(base http.RoundTripper, requests, tokens int) (http.RoundTripper, error)
}

var clients = []client{
	{name: "openai-go's 2 retries", wrap: func(base http.RoundTripper, _, _ int) (http.RoundTripper, error) { return base, nil }},
	{name: "x/time/rate twice, bursts of a minute", wrap: buckets(time.Minute, 1)},
	{name: "x/time/rate twice, bursts of 1 s", wrap: buckets(time.Second, 1)},
	{name: "x/time/rate twice, bursts of 1 s, sizes taken for twice as much", wrap: buckets(time.Second, 2)},
	{name: "pace, sizes known", wrap: paced(1)},
	{name: "pace, sizes known, jitter of 0 to 100 ms", jitter: 100 * time.Millisecond, wrap: paced(1)},
	{name: "pace, sizes taken for twice as much", wrap: paced(2)},
	{name: "pace, sizes taken for half as much", wrap: paced(0.5)},
	{name: "pace, sizes from the requests", wrap: paced(0)},
}

// sizeHeader tells those clients that know it what a call comes to, in tokens: of its prompt and of
// its reply.
const sizeHeader = "X-Size"

func size(r *http.Request) (prompt, reply int) {
	fmt.Sscan(r.Header.Get(sizeHeader), &prompt, &reply)
	return prompt, reply
}

// paced returns pace with estimates that are so many times the size; 0: with those that it makes
// itself, from the request's body.
func paced(estimate float64) func(http.RoundTripper, int, int) (http.RoundTripper, error) {
	return func(base http.RoundTripper, requests, tokens int) (http.RoundTripper, error) {
		var opts []llm.Option
		if estimate > 0 {
			opts = append(opts, llm.WithEstimate(func(r *http.Request, _ []byte) (int, int) {
				prompt, reply := size(r)
				return int(estimate * float64(prompt)), int(estimate * float64(reply))
			}))
		}
		return llm.New(base, llm.OpenAI(), llm.Limits{RequestsPerMinute: requests, TokensPerMinute: tokens}, opts...)
	}
}

// buckets returns two token buckets of x/time/rate, for requests and for tokens, that hold what
// they get in so long.
func buckets(burst time.Duration, estimate float64) func(http.RoundTripper, int, int) (http.RoundTripper, error) {
	return func(base http.RoundTripper, requests, tokens int) (http.RoundTripper, error) {
		limiter := func(n int) *rate.Limiter {
			perSecond := float64(n) / 60
			return rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond*burst.Seconds())))
		}
		byRequest, byToken := limiter(requests), limiter(tokens)
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			prompt, reply := size(r)
			tokens := int(estimate * float64(prompt+reply))
			if err := byRequest.Wait(r.Context()); err != nil {
				return nil, err
			}
			if err := byToken.WaitN(r.Context(), min(tokens, byToken.Burst())); err != nil {
				return nil, err
			}
			return base.RoundTrip(r)
		}), nil
	}
}

// shaken returns a transport that takes up to so long to send.
func shaken(base http.RoundTripper, jitter time.Duration) http.RoundTripper {
	if jitter == 0 {
		return base
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		time.Sleep(rand.N(jitter))
		return base.RoundTrip(r)
	})
}

// A roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
