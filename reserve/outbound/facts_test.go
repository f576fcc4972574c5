package outbound

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

func says(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// saysNothingIsLeft is a server that answers a 403 until a time, and says that nothing is left, and not until when.
func saysNothingIsLeft(until time.Duration, times *[]time.Duration) tripper {
	var mu sync.Mutex
	begin := time.Now()
	return func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		*times = append(*times, time.Since(begin))
		mu.Unlock()
		if time.Since(begin) < until {
			return says(403, "", "X-Ratelimit-Remaining", "0"), nil
		}
		return says(200, ""), nil
	}
}

// Nothing is left, and nobody says until when: all calls of the key wait for a second, and longer each time.
func TestNothingLeftWithoutATime(t *testing.T) {
	const s = time.Second
	for _, retries := range []int{5, 0} {
		synctest.Test(t, func(t *testing.T) {
			var times []time.Duration
			client := &http.Client{Transport: reserve.Must(New(saysNothingIsLeft(10*s, &times), nil, WithRetries(retries)))}
			for range 5 {
				get(client, "http://a/")
			}
			for i, want := range []time.Duration{0, s, 3 * s, 7 * s, 15 * s} {
				require.GreaterOrEqual(t, times[i], want)
				require.LessOrEqual(t, times[i], want+s/2, "the rate that is found is low meanwhile")
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // those that are out together are refused once
		var times []time.Duration
		server := saysNothingIsLeft(10*s, &times)
		client := &http.Client{Transport: reserve.Must(New(tripper(func(r *http.Request) (*http.Response, error) {
			pass(100 * time.Millisecond)
			return server(r)
		}), nil))}
		for range 8 {
			getAll(client, "http://a/", 20)
		}
		n := 0
		for _, at := range times {
			if at < 10*s {
				n++
			}
		}
		require.LessOrEqual(t, n, 20+3, "%v", times)
	})
}

// A refusal that is not about the rate stops only its call.
func TestNotTheRate(t *testing.T) {
	for name, refusal := range map[string]*http.Response{
		"Okta":   says(429, "", "X-Rate-Limit-Limit", "0", "X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "60"),
		"Stripe": says(429, `{"error":{"code":"lock_timeout"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var throttled []string
				first, limiter := true, reserve.Must(pace.NewBursty(100))
				base := tripper(func(r *http.Request) (*http.Response, error) {
					defer func() { first = false }()
					if first {
						return refusal, nil
					}
					return says(200, ""), nil
				})
				client := &http.Client{Transport: reserve.Must(New(base, limiter, WithRetries(1), Adaptive(), WithHooks(Hooks{
					Throttled: func(_ *http.Response, limit string, after time.Duration) {
						throttled = append(throttled, limit+after.String())
					},
				})))}
				begin := time.Now()
				done := make(chan time.Duration)
				go func() { get(client, "http://a/"); done <- time.Since(begin) }()
				synctest.Wait()
				status, err := get(client, "http://a/")
				require.NoError(t, err)
				require.Equal(t, 200, status)
				require.Less(t, time.Since(begin), time.Second)
				require.Equal(t, time.Second, <-done)
				require.Equal(t, []string{"1s"}, throttled)
				require.Equal(t, 100., limiter.Rate())
			})
		})
	}
}

// What is left of a limit that the caller has not is until when all wait, if a refusal says nothing else.
func TestAnotherLimitsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		begin := time.Now()
		client := &http.Client{Transport: reserve.Must(New(tripper(func(r *http.Request) (*http.Response, error) {
			if times = append(times, time.Since(begin)); len(times) == 1 {
				r := says(400, `{"errors":[{"extensions":{"code":"RATELIMITED"}}]}`, "Content-Type", "application/json",
					"X-Ratelimit-Requests-Limit", "2500", "X-Ratelimit-Requests-Remaining", "2400", "X-Ratelimit-Requests-Reset", "3600",
					"X-Ratelimit-Complexity-Limit", "250000", "X-Ratelimit-Complexity-Remaining", "0", "X-Ratelimit-Complexity-Reset", "90")
				return r, nil
			}
			return says(200, "{}"), nil
		}), nil, WithRetries(1)))}
		r, err := http.NewRequestWithContext(context.Background(), "GET", "http://api.linear.app/graphql", nil)
		require.NoError(t, err)
		_, err = client.Do(r)
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 90 * time.Second}, times)
	})
}

// An SDK that retries a call which pace gave up does not reach the server within its stop.
func TestRetriesOfAnSDK(t *testing.T) {
	for name, opts := range map[string][]Option{
		"the refusal is the answer": nil,
		"after retries":             {WithRetries(2)},
		"beyond the longest stop":   {WithRetries(2), WithMaxRetryAfter(20 * time.Second)},
		"no time to wait":           {WithMaxWait(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var times []time.Duration
				begin := time.Now()
				client := &http.Client{Transport: reserve.Must(New(tripper(func(*http.Request) (*http.Response, error) {
					times = append(times, time.Since(begin))
					return says(429, "", "Retry-After", "30"), nil
				}), nil, opts...))}
				for range 20 { // the SDK's
					get(client, "http://a/")
				}
				for i := 1; i < len(times); i++ {
					require.GreaterOrEqual(t, times[i]-times[i-1], 20*time.Second)
				}
			})
		})
	}
}
