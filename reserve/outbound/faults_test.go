package outbound

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// Each of these failed once: a base, a body or a hook did what http.Client puts up with, and the
// transport panicked, or let other calls wait without an end.

// trip sends a request with a deadline of a minute, and returns the error, be it a panic's.
func trip(t *testing.T, transport http.RoundTripper, method string) (response *http.Response, err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second)
	t.Cleanup(cancel)
	response, err = transport.RoundTrip(httptest.NewRequestWithContext(ctx, method, "http://a/", nil))
	if response != nil && response.Body != nil {
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	return response, err
}

func status(code int, lines ...string) *http.Response {
	return &http.Response{StatusCode: code, Header: headers(lines...), Body: http.NoBody}
}

// D3: a base that returns a response and an error, as go-retryablehttp may, ends the probe, and the
// response's body is closed.
func TestResponseAndError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &body{Reader: strings.NewReader("x")}
		fails := true
		base := tripper(func(*http.Request) (*http.Response, error) {
			if fails {
				return &http.Response{StatusCode: 500, Body: b}, errGone
			}
			return ok(""), nil
		})
		transport := reserve.Must(New(base, nil, Adaptive()))
		response, err := trip(t, transport, http.MethodGet)
		require.ErrorIs(t, err, errGone)
		require.Nil(t, response)
		require.Equal(t, int64(1), b.closed.Load())
		fails = false
		_, err = trip(t, transport, http.MethodGet)
		require.NoError(t, err)
	})
}

// D4: a hook or function of the caller's that panics loses only its own call: the probe ends, the
// response's body is closed, and the place in flight comes back.
func TestPanicAfterTheResponse(t *testing.T) {
	for name, option := range map[string]func() Option{
		"Throttled": func() Option {
			return WithHooks(Hooks{Throttled: func(*http.Response, string, time.Duration) { panic("on purpose") }})
		},
		"a dialect": func() Option {
			return WithDialect(Dialect{Body: func(*http.Response, []byte) (RefusalBody, bool) { panic("on purpose") }})
		},
		"Used": func() Option {
			return WithLimit(Limit{Limiter: evenlyAt(1000), Used: func(*http.Response) Usage { panic("on purpose") }})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &body{Reader: strings.NewReader("x")}
				first := true
				base := tripper(func(*http.Request) (*http.Response, error) {
					if first {
						return &http.Response{StatusCode: map[bool]int{true: 200, false: 429}[name == "Used"], Header: http.Header{}, Body: b}, nil
					}
					return ok(""), nil
				})
				var by reserve.Reserver = evenlyAt(math.Inf(1))
				transport := reserve.Must(New(base, by, Adaptive(), WithMaxInFlight(1), option()))
				_, err := trip(t, transport, http.MethodGet)
				require.EqualError(t, err, "panic: on purpose")
				require.Equal(t, int64(1), b.closed.Load(), "the body is closed")
				first = false
				_, err = trip(t, transport, http.MethodGet)
				if name == "Used" { // panics at each response
					require.EqualError(t, err, "panic: on purpose")
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

// panicking is a limiter of the caller's that panics.
type panicking struct{}

func (panicking) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	panic("on purpose")
}

// A limiter that panics loses only its own call: what was reserved at the others comes back. Before, the place in flight
// stayed taken, and the next call waited without an end.
func TestPanicOfALimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := evenly10()
		transport := reserve.Must(New(tripper(func(*http.Request) (*http.Response, error) { return ok(""), nil }), l,
			WithMaxInFlight(1), WithLimit(Limit{Limiter: panicking{}, Cost: func(r *http.Request) int { return len(r.Method) - len("GET") }})))
		for range 3 {
			_, err := trip(t, transport, http.MethodHead)
			require.ErrorContains(t, err, "on purpose")
		}
		begin := time.Now()
		_, err := trip(t, transport, http.MethodGet)
		require.NoError(t, err)
		require.Equal(t, begin, time.Now(), "nothing was charged")
		requireIdle(t, transport)
	})
}

// D5: a refusal without a body is sent again.
func TestNilBodyAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		base := tripper(func(*http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return &http.Response{StatusCode: 429, Header: headers("Retry-After: 1")}, nil
			}
			return &http.Response{StatusCode: 200}, nil
		})
		response, err := trip(t, reserve.Must(New(base, evenly10(), WithRetries(1))), http.MethodGet)
		require.NoError(t, err)
		require.Equal(t, 200, response.StatusCode)
		require.NotNil(t, response.Body)
	})
}

// D6: a base that returns neither a response nor an error is an error, as in http.Client.
func TestNeitherResponseNorError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := tripper(func(*http.Request) (*http.Response, error) { return nil, nil })
		_, err := trip(t, reserve.Must(New(base, evenly10())), http.MethodGet)
		require.EqualError(t, err, "outbound: the response of outbound.tripper is <nil>; want a response or an error")
		require.IsType(t, &reserve.ValueError{}, err)
	})
}

// D7: a window of a key goes on while it is stopped, as one that is not keyed does.
func TestKeyedWindowGoesOnWhileItIsStopped(t *testing.T) {
	perMinute := reserve.Must(window.Policy(1, time.Minute))
	keys := keyed.New(func(string) (*reserve.Policy, error) { return perMinute, nil })
	for name, opts := range map[string]func() (*reserve.Limiter, []Option){
		"plain": func() (*reserve.Limiter, []Option) { return perMinute.Limiter(), nil },
		"keyed": func() (*reserve.Limiter, []Option) { return nil, []Option{PerKey(Host, keys.For)} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				perMinute = reserve.Must(window.Policy(1, time.Minute)) // of the bubble's clock
				keys = keyed.New(func(string) (*reserve.Policy, error) { return perMinute, nil })
				begin, n := time.Now(), 0
				base := tripper(func(*http.Request) (*http.Response, error) {
					if n++; n == 1 {
						return status(429, "Retry-After: 60"), nil
					}
					return status(200), nil
				})
				var by reserve.Reserver
				limiter, more := opts()
				if limiter != nil {
					by = limiter
				}
				response, err := trip(t, reserve.Must(New(base, by, append(more, WithRetries(1))...)), http.MethodGet)
				require.NoError(t, err)
				require.Equal(t, 200, response.StatusCode)
				require.Equal(t, time.Minute, time.Since(begin))
			})
		})
	}
}

// D9: Recost is asked of a single limit that is not of this process, too.
func TestRecostOfARemoteLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := evenly10()
		base := tripper(func(*http.Request) (*http.Response, error) { return ok(""), nil })
		transport := reserve.Must(New(base, nil, WithLimit(Limit{
			Limiter: bare{limiter}, Cost: func(*http.Request) int { return 100 }, Recost: func(*http.Request) int { return 10 },
		})))
		_, err := trip(t, transport, http.MethodGet)
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Until(limiter.NextFree()))
	})
}

// D10: a call that no limit counts waits as long as its refusal says before it is sent again.
func TestRetryWithoutCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		base := tripper(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Since(begin))
			return status(429, "Retry-After: 5"), nil
		})
		transport := reserve.Must(New(base, nil, WithRetries(2), WithMaxInFlight(1),
			WithLimit(Limit{Limiter: evenly10(), Cost: func(*http.Request) int { return 0 }})))
		_, err := trip(t, transport, http.MethodGet)
		require.NoError(t, err)
		require.Equal(t, ms(0, 5000, 10000), at)
	})
}

// D12: after a 503 that does not say when, the request may have been carried out. So only an
// idempotent one is sent again, or any with RetryNonIdempotent.
func TestBare503(t *testing.T) {
	for _, c := range []struct {
		name     string
		method   string
		key      string
		response func() *http.Response
		opts     []Option
		sent     int
	}{
		{name: "GET", method: "GET", response: func() *http.Response { return status(503) }, sent: 2},
		{name: "PUT", method: "PUT", response: func() *http.Response { return status(503) }, sent: 2},
		{name: "POST", method: "POST", response: func() *http.Response { return status(503) }, sent: 1},
		{name: "PATCH", method: "PATCH", response: func() *http.Response { return status(503) }, sent: 1},
		{name: "POST with a key", method: "POST", key: "Idempotency-Key", response: func() *http.Response { return status(503) }, sent: 2},
		{name: "POST with an X- key", method: "POST", key: "X-Idempotency-Key", response: func() *http.Response { return status(503) }, sent: 2},
		{name: "POST, all", method: "POST", response: func() *http.Response { return status(503) }, opts: []Option{RetryNonIdempotent()}, sent: 2},
		{name: "POST, 503 with a time", method: "POST", response: func() *http.Response { return status(503, "Retry-After: 1") }, sent: 2},
		{name: "POST, 429", method: "POST", response: func() *http.Response { return status(429) }, sent: 2},
		{name: "POST, 529", method: "POST", response: func() *http.Response { return status(529) }, sent: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				base := tripper(func(*http.Request) (*http.Response, error) {
					sent++
					return c.response(), nil
				})
				transport := reserve.Must(New(base, evenly10(), append(c.opts, WithRetries(1))...))
				r := httptest.NewRequestWithContext(t.Context(), c.method, "http://a/", nil)
				r.Body = http.NoBody
				if c.key != "" {
					r.Header.Set(c.key, "1")
				}
				response, err := transport.RoundTrip(r)
				require.NoError(t, err)
				response.Body.Close()
				require.Equal(t, c.sent, sent)
			})
		})
	}
}

// D1: calls that wait for a stop, or between two attempts, hold no place: another host goes on.
func TestPlacesAreForCallsThatAreOut(t *testing.T) {
	for name, header := range map[string]string{"a stop": "Retry-After: 60", "a backoff": "X: y"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refuses atomic.Bool
				refuses.Store(true)
				base := tripper(func(r *http.Request) (*http.Response, error) {
					if r.URL.Host == "a" && refuses.Load() {
						return status(429, header), nil
					}
					return status(200), nil
				})
				transport := reserve.Must(New(base, nil, WithMaxInFlight(4), WithRetries(3)))
				for range 4 {
					go func() {
						r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/", nil)
						if response, err := transport.RoundTrip(r); err == nil {
							response.Body.Close()
						}
					}()
				}
				synctest.Wait()
				refuses.Store(false)
				begin := time.Now()
				response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://b/", nil))
				require.NoError(t, err)
				response.Body.Close()
				require.Zero(t, time.Since(begin))
				<-time.After(2 * time.Minute)
			})
		})
	}
}

// D2: WithMaxWait and a deadline hold for a place, too.
func TestMaxWaitForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := tripper(func(*http.Request) (*http.Response, error) {
			<-time.After(2 * time.Minute)
			return ok(""), nil
		})
		for _, wait := range []time.Duration{0, time.Second} {
			transport := reserve.Must(New(base, evenlyAt(1000), WithMaxInFlight(1), WithMaxWait(wait)))
			go func() { oneTrip(transport) }()
			synctest.Wait()
			<-time.After(time.Second)
			for range 2 { // the first in line, and one behind it
				go func() { oneTrip(transport) }()
			}
			begin := time.Now()
			_, err := trip(t, transport, http.MethodGet)
			var late *reserve.WaitError
			require.ErrorAs(t, err, &late)
			require.Equal(t, wait, late.MaxWait)
			require.Greater(t, late.Wait, wait)
			require.Equal(t, wait, time.Since(begin).Round(time.Microsecond))
			<-time.After(10 * time.Minute)
		}
	})
}

func oneTrip(transport http.RoundTripper) {
	if response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil)); err == nil {
		response.Body.Close()
	}
}

func evenlyAt(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0)))
}

// F1: looking takes nothing. After 200 calls the limiters have granted what was used, and no more.
func TestSnapshotBehindATransport(t *testing.T) {
	for name, keyed := range map[string]bool{"one limit": false, "two limits": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests, tokens := evenlyAt(50), evenlyAt(4000)
				var opts []Option
				if keyed {
					opts = append(opts, WithLimit(Limit{Name: "tokens", Limiter: tokens, Cost: func(*http.Request) int { return 100 }}))
				}
				base := tripper(func(*http.Request) (*http.Response, error) { return ok(""), nil })
				client := &http.Client{Transport: reserve.Must(New(base, requests, opts...))}
				require.Equal(t, map[int]int{200: 200}, getAll(client, "http://a", 200))
				s := requests.Snapshot()
				require.Equal(t, []uint64{200, 0, 0}, []uint64{s.Granted, s.GivenBack, s.Refused})
				if keyed {
					s := tokens.Snapshot()
					require.Equal(t, []uint64{20_000, 0, 0}, []uint64{s.Granted, s.GivenBack, s.Refused})
				}
			})
		})
	}
}

// F2, D8: whoever else uses the limiter sees at most the first call of the line, and not the whole of it.
func TestAskingIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		everything := reserve.Must(pace.NewBursty(1000))
		<-time.After(time.Second) // it has stored 1000
		hosts := keyed.New(func(host string) (*reserve.Policy, error) {
			if host == "slow:80" {
				return pace.Bursty(10, pace.WithBurst(0))
			}
			return pace.Bursty(100_000)
		})
		base := tripper(func(*http.Request) (*http.Response, error) { return ok(""), nil })
		transport := reserve.Must(New(base, everything, PerKey(Host, hosts.For)))
		ctx, cancel := context.WithCancel(t.Context())
		for range 1000 {
			go func() { transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://slow/", nil)) }()
		}
		for range 1000 {
			_, err := everything.ReserveWithin(ctx, 1, 500*time.Millisecond)
			require.NoError(t, err)
			<-time.After(time.Millisecond)
		}
		cancel()
		synctest.Wait()
		s := everything.Snapshot()
		require.InDelta(t, 1000+10, s.Granted-s.GivenBack, 2)
		require.Less(t, s.Granted, uint64(1100), "with what is held for the first, and given back: a few, not one for each of 1,000 that wait")
	})
}
