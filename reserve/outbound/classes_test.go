package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// A tripper is a base transport that is a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// reply is a response with a status and a body.
func replyWith(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ProtoMajor: 1, ProtoMinor: 1}
}

var twoClasses = []fair.Class{{Name: "people", Priority: 1}, {Name: "batch"}}

// requestOf makes a request of a class, whose cost is the number in its path.
func requestOf(ctx context.Context, class string, cost int) *http.Request {
	r, err := http.NewRequestWithContext(fair.With(ctx, class, ""), "GET", "http://server/"+strconv.Itoa(cost), nil)
	if err != nil {
		panic(err)
	}
	return r
}

func costOf(r *http.Request) int {
	n, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
	return n
}

// A call of people waits for a slot, whatever waits in the batch: with one limit, and with requests and tokens.
func TestClasses(t *testing.T) {
	limits := map[string]func() (reserve.Reserver, []outbound.Option){
		"one limit": func() (reserve.Reserver, []outbound.Option) {
			return nil, []outbound.Option{outbound.WithLimit(outbound.Limit{
				Limiter: reserve.Must(pace.NewBursty(10, pace.WithBurst(0))), Cost: costOf,
			})}
		},
		"requests and tokens": func() (reserve.Reserver, []outbound.Option) {
			tokens := outbound.Limit{Name: "tokens", Limiter: reserve.Must(pace.NewBursty(10, pace.WithBurst(0))), Cost: costOf}
			return reserve.Must(pace.NewBursty(100, pace.WithBurst(0))), []outbound.Option{outbound.WithLimit(tokens)}
		},
		"not pausable": func() (reserve.Reserver, []outbound.Option) {
			return nil, []outbound.Option{outbound.WithLimit(outbound.Limit{
				Limiter: reserve.All(reserve.Must(pace.NewBursty(10, pace.WithBurst(0)))), Cost: costOf,
			})}
		},
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				by, opts := limit()
				base := tripper(func(*http.Request) (*http.Response, error) { return replyWith(200, ""), nil })
				transport, err := outbound.New(base, by, append(opts, outbound.WithClasses(nil, twoClasses...))...)
				require.NoError(t, err)
				var all sync.WaitGroup
				var mu sync.Mutex
				var waits []time.Duration
				begin := time.Now()
				call := func(class string, cost int) {
					asked := time.Now()
					response, err := transport.RoundTrip(requestOf(t.Context(), class, cost))
					require.NoError(t, err)
					response.Body.Close()
					mu.Lock()
					defer mu.Unlock()
					if class == "people" {
						waits = append(waits, time.Since(asked))
					}
				}
				for i := range 1000 {
					all.Go(func() { call("batch", 1+i%3) })
				}
				for i := range 100 {
					time.Sleep(1990 * time.Millisecond)
					all.Go(func() { call("people", 1+i%3) })
				}
				all.Wait()
				slices.Sort(waits)
				t.Log(waits[98], waits[99], time.Since(begin))
				require.LessOrEqual(t, waits[98], 301*time.Millisecond)
				require.InDelta(t, 219.7, time.Since(begin).Seconds(), 0.5)
			})
		})
	}
}

// A refusal stops all; a retry keeps its place; cancelled calls and those whose deadline is too near take nothing.
func TestClassesAndRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []string
		begin := time.Now()
		refused := false
		base := tripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			class, _ := fair.From(r.Context())
			sent = append(sent, fmt.Sprint(class, " ", r.URL.Path[1:], " ", time.Since(begin).Round(10*time.Nanosecond)))
			if !refused && r.URL.Path == "/3" {
				refused = true
				return replyWith(429, "", "Retry-After", "10"), nil
			}
			return replyWith(200, ""), nil
		})
		limiter := reserve.Must(pace.NewBursty(1, pace.WithBurst(0)))
		transport, err := outbound.New(base, limiter, outbound.WithClasses(nil, twoClasses...), outbound.WithRetries(1))
		require.NoError(t, err)
		var all sync.WaitGroup
		call := func(ctx context.Context, class string, number int) chan error {
			result := make(chan error, 1)
			all.Go(func() {
				response, err := transport.RoundTrip(requestOf(ctx, class, number))
				if err == nil {
					response.Body.Close()
				}
				result <- err
			})
			synctest.Wait()
			return result
		}
		gone := errors.New("gone")
		cancelled, cancel := context.WithCancelCause(t.Context())
		call(t.Context(), "batch", 1)
		call(t.Context(), "batch", 2)
		call(t.Context(), "batch", 3)
		call(t.Context(), "batch", 4)
		lost := call(cancelled, "batch", 5)
		lostFirst := call(cancelled, "people", 6)
		call(t.Context(), "people", 7)
		cancel(gone)
		require.ErrorIs(t, <-lost, gone)
		require.ErrorIs(t, <-lostFirst, gone)
		soon, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		var late *reserve.WaitError
		require.ErrorAs(t, <-call(soon, "people", 8), &late)
		all.Wait()
		require.Equal(t, []string{
			"batch 1 0s", "people 7 1s", "batch 2 2s", "batch 3 3s", "batch 3 14s", "batch 4 15.04081078s",
		}, sent)
		require.Equal(t, uint64(6), limiter.Snapshot().Granted-limiter.Snapshot().GivenBack)
	})
}

// A tenant is charged what its calls have used.
func TestClassesSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := tripper(func(*http.Request) (*http.Response, error) { return replyWith(200, ""), nil })
		spent := map[string]int{}
		var mu sync.Mutex
		tokens := reserve.Must(pace.NewTokenBucket(1000, 1000))
		of := func(r *http.Request) (class, tenant string) { return "", r.URL.Host }
		limit := outbound.Limit{
			Limiter: tokens, Cost: costOf, Used: func(*http.Response) outbound.Usage { return used(400) },
		}
		transport, err := outbound.New(base, nil, outbound.WithLimit(limit), outbound.WithClasses(of, fair.Class{}))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for host, cost := range map[string]int{"guesses": 1000, "knows": 400} {
			for range 4 {
				all.Go(func() {
					for {
						r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://%s/%d", host, cost), nil)
						require.NoError(t, err)
						response, err := transport.RoundTrip(r)
						if err != nil {
							return
						}
						response.Body.Close()
						mu.Lock()
						spent[host] += 400
						mu.Unlock()
					}
				})
			}
		}
		time.Sleep(200 * time.Second)
		cancel()
		all.Wait()
		require.InEpsilon(t, spent["knows"], spent["guesses"], 0.02, "%v", spent)
	})
}

// A class with a window of its own leaves the rest to others.
func TestClassesLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := tripper(func(*http.Request) (*http.Response, error) { return replyWith(200, ""), nil })
		transport, err := outbound.New(base, reserve.Must(window.New(10, time.Hour)),
			outbound.WithClasses(nil, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch", Limit: reserve.Must(window.New(7, time.Hour))}))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		counts := map[string]int{}
		var mu sync.Mutex
		for range 20 {
			for _, class := range []string{"batch", "people"} {
				all.Go(func() {
					if class == "people" {
						time.Sleep(time.Minute)
					}
					if _, err := transport.RoundTrip(requestOf(ctx, class, 1)); err == nil {
						mu.Lock()
						counts[class]++
						mu.Unlock()
					}
				})
			}
		}
		time.Sleep(2 * time.Minute)
		cancel()
		all.Wait()
		require.Equal(t, map[string]int{"batch": 7, "people": 3}, counts)
	})
}

func TestClassesInput(t *testing.T) {
	_, err := outbound.New(nil, nil, outbound.WithClasses(nil))
	require.EqualError(t, err, "fair: the number of classes is 0; want at least 1")
}
