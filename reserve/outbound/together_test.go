package outbound_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
)

// These tests are of options together: what each does alone has its own file.

var errBroken = errors.New("the connection is broken")

func evenly(permitsPerSecond float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(permitsPerSecond, pace.WithBurst(0)))
}

// roundTrip sends a request for a path, and closes its response.
func roundTrip(ctx context.Context, t http.RoundTripper, path string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://server/"+path, nil)
	if err != nil {
		return 0, err
	}
	response, err := t.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// A call that probes an unknown rate gives its place in flight back, because another limit has no room, and then waits
// for that limit. It does not wait for its own probe.
func TestProbeGivesPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
		defer stop()
		sent := 0
		server := tripper(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			if sent++; sent == 1 {
				return nil, errBroken
			}
			return replyWith(200, ""), nil
		})
		transport, err := outbound.New(server, evenly(math.Inf(1)), outbound.Adaptive(), outbound.WithMaxInFlight(1),
			outbound.WithLimit(outbound.Limit{Name: "slow", Limiter: evenly(0.1)}))
		require.NoError(t, err)
		begin := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			_, err := roundTrip(ctx, transport, "")
			require.ErrorIs(t, err, errBroken)
		})
		synctest.Wait()
		all.Go(func() {
			status, err := roundTrip(ctx, transport, "")
			require.NoError(t, err)
			require.Equal(t, 200, status)
			require.Equal(t, 11*time.Second, time.Since(begin))
		})
		all.Wait()
	})
}

// A more urgent call takes the turn of the call that probes: it probes itself.
func TestProbeHandsItsTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
		defer stop()
		server := tripper(func(*http.Request) (*http.Response, error) { return replyWith(200, ""), nil })
		slow := evenly(0.1)
		require.True(t, slow.TryAcquire(1))
		transport, err := outbound.New(server, evenly(math.Inf(1)), outbound.Adaptive(),
			outbound.WithLimit(outbound.Limit{Name: "slow", Limiter: slow}), outbound.WithClasses(nil, twoClasses...))
		require.NoError(t, err)
		begin := time.Now()
		var all sync.WaitGroup
		for i, class := range []string{"batch", "people"} {
			all.Go(func() {
				status, err := roundTrip(fair.With(ctx, class, ""), transport, class)
				require.NoError(t, err)
				require.Equal(t, 200, status)
				require.Equal(t, []time.Duration{20 * time.Second, 10 * time.Second}[i], time.Since(begin))
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// A refusal that concerns all calls names a limit that the call has not paid for. The retry pays for its own limits, and
// each is settled.
func TestRefusalOfAllCalls(t *testing.T) {
	for name, more := range map[string][]outbound.Option{"": nil, "adaptive": {outbound.Adaptive()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				server := tripper(func(*http.Request) (*http.Response, error) {
					if sent++; sent == 1 {
						return replyWith(429, "", "X-Ratelimit-Global", "true", "Retry-After", "1"), nil
					}
					return replyWith(200, ""), nil
				})
				requests, tokens := evenly(100), evenly(1)
				limit := func(name string, by *reserve.Limiter) outbound.Limit {
					return outbound.Limit{Name: name, Keyed: outbound.Keyed(outbound.Host, func(string) reserve.Reserver { return by })}
				}
				t2 := limit("tokens", tokens)
				t2.Used = func(*http.Response) outbound.Usage { return used(50) }
				transport, err := outbound.New(server, nil, append(more, outbound.WithRetries(1),
					outbound.WithLimit(limit("requests", requests)), outbound.WithLimit(t2))...)
				require.NoError(t, err)
				status, err := roundTrip(t.Context(), transport, "")
				require.NoError(t, err)
				require.Equal(t, 200, status)
				require.Equal(t, 2, sent)
				require.InDelta(t, 50, time.Until(tokens.NextFree()).Seconds(), 4, "the retry's 50 tokens are charged")
			})
		})
	}
}

// used is a usage that is known.
type used int

func (u used) Write(p []byte) (int, error) { return len(p), nil }
func (u used) Used() (int, bool)           { return int(u), true }

// The same where the call goes to another upstream.
func TestRefusalOfAllCallsOfUpstreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		server := tripper(func(*http.Request) (*http.Response, error) {
			if sent++; sent == 1 {
				return replyWith(429, "", "X-Ratelimit-Global", "true", "Retry-After", "1"), nil
			}
			return replyWith(200, ""), nil
		})
		upstreams := []outbound.Upstream{{Base: address("http://a")}, {Base: address("http://b")}}
		byHost := evenly(100)
		transport, err := outbound.NewUpstreams(server, upstreams, outbound.Adaptive(),
			outbound.PerKey(outbound.Host, func(string) reserve.Reserver { return byHost }))
		require.NoError(t, err)
		status, err := roundTrip(t.Context(), transport, "")
		require.NoError(t, err)
		require.Equal(t, 200, status)
		require.Equal(t, 2, sent)
	})
}

func address(s string) *url.URL { return reserve.Must(url.Parse(s)) }

// panics is a usage whose Write panics.
type panics struct{}

func (panics) Write([]byte) (int, error) { panic("usage") }
func (panics) Used() (int, bool)         { return 0, false }

// A usage that panics leaves a body that can be closed, and its place comes back.
func TestUsageWritePanics(t *testing.T) {
	server := tripper(func(*http.Request) (*http.Response, error) { return replyWith(200, "body"), nil })
	transport, err := outbound.New(server, evenly(1000), outbound.WithMaxInFlight(1), outbound.WithLimit(outbound.Limit{
		Name: "tokens", Limiter: evenly(1000), Used: func(*http.Response) outbound.Usage { return panics{} },
	}))
	require.NoError(t, err)
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://server/", nil)
		require.NoError(t, err)
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.PanicsWithValue(t, "usage", func() { _, _ = io.ReadAll(response.Body) })
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			response.Body.Close()
		}()
		select {
		case <-closed:
		case <-time.After(5 * time.Second):
			t.Fatal("Close hangs")
		}
	}
}

// A slow limit is one that takes its time to answer.
type slow struct{ asked, answers chan struct{} }

func (s *slow) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-s.answers
	return evenly(1).ReserveWithin(ctx, n, maxWait)
}

// While a limit takes its time to answer the first call, another call of the same keys can give up. (It is not in a
// bubble: there a call that waits for a mutex stops the clock.)
func TestWaitersCanGiveUp(t *testing.T) {
	limit := &slow{make(chan struct{}, 1), make(chan struct{})}
	server := tripper(func(*http.Request) (*http.Response, error) { return replyWith(200, ""), nil })
	transport, err := outbound.NewUpstreams(server, []outbound.Upstream{{Base: address("http://a"), By: limit}},
		outbound.WithClasses(nil, twoClasses...), outbound.WithMaxWait(0))
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() { _, _ = roundTrip(t.Context(), transport, "") })
	<-limit.asked
	ctx, stop := context.WithCancel(t.Context())
	gaveUp := make(chan struct{})
	all.Go(func() {
		defer close(gaveUp)
		_, _ = roundTrip(ctx, transport, "")
	})
	stop()
	select {
	case <-gaveUp:
	case <-time.After(5 * time.Second):
		t.Error("the second call waits although it was given up")
	}
	close(limit.answers)
	all.Wait()
}
