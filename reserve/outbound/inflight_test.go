package outbound

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// counting is a server, as a round tripper, that knows how many requests it has at a time, of each
// host. It has a request until its body was closed or read to its end, or its context has ended.
type counting struct {
	mu     sync.Mutex
	all    map[*http.Request]bool
	most   int
	answer func(r *http.Request) (*http.Response, error)
}

func (c *counting) now(host string) (n int) {
	for r := range c.all {
		if r.URL.Host == host && r.Context().Err() == nil {
			n++
		}
	}
	return n
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.all[r] = true
	c.most = max(c.most, c.now(r.URL.Host))
	c.mu.Unlock()
	gone := sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.all, r)
	})
	answered := false
	defer func() {
		if !answered {
			gone()
		}
	}()
	response, err := c.answer(r)
	if err == nil {
		answered = true
		response.Body = leaving{response.Body, gone}
	}
	return response, err
}

// leaving is a body that the server works on until it is closed or was read to its end.
type leaving struct {
	io.ReadCloser
	gone func()
}

func (l leaving) Close() error { l.gone(); return l.ReadCloser.Close() }

func (l leaving) Read(p []byte) (n int, err error) {
	if n, err = l.ReadCloser.Read(p); err != nil {
		l.gone()
	}
	return n, err
}

func ok(body string) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// Over very many requests with random cancels, panics, errors and bodies left unread until they are
// closed, a server never sees more than n at a time, of any key, and nothing is remembered in the
// end. PACE_REQUESTS sets how many there are.
func TestInFlight(t *testing.T) {
	const n = 8
	requests := int64(30_000)
	if more, err := strconv.ParseInt(os.Getenv("PACE_REQUESTS"), 10, 64); err == nil {
		requests = more
	}
	synctest.Test(t, func(t *testing.T) {
		server := &counting{all: map[*http.Request]bool{}}
		server.answer = func(r *http.Request) (*http.Response, error) {
			switch dice := rand.IntN(100); {
			case dice < 3:
				panic(errGone)
			case dice < 6:
				return nil, errGone
			case dice < 50:
				<-time.After(rand.N(10 * time.Millisecond))
			}
			return ok("hello"), nil
		}
		transport := reserve.Must(New(server, reserve.Must(pace.NewBursty(unknownRate)), WithMaxInFlight(n, Host)))
		var left atomic.Int64
		left.Store(requests)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					oneRequest(transport, fmt.Sprintf("http://host%d/", i%3))
				}
			})
		}
		all.Wait()
		require.Equal(t, n, server.most)
		requireIdle(t, transport)
		require.Empty(t, server.all)
	})
}

// requireIdle requires that no call uses a limit, or has a place.
func requireIdle(t *testing.T, transport *Transport) {
	for _, s := range transport.states.all() {
		require.Zero(t, s.users.Load())
		require.Zero(t, s.taken())
	}
}

// oneRequest makes a request as callers do: with or without a deadline, reading all of the body,
// some, or none. It survives a panic.
func oneRequest(transport *Transport, url string) {
	defer func() { recover() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	if rand.IntN(10) == 0 {
		ctx, cancel = context.WithTimeout(context.Background(), rand.N(5*time.Millisecond))
	}
	defer cancel()
	response, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil))
	if err != nil {
		return
	}
	defer response.Body.Close()
	switch rand.IntN(3) {
	case 0:
		io.Copy(io.Discard, response.Body)
	case 1:
		response.Body.Read(make([]byte, 2))
	}
	if rand.IntN(4) == 0 {
		<-time.After(rand.N(10 * time.Millisecond))
	}
}

// When a server stalls, those that wait have bought nothing yet: afterwards there is no burst.
func TestInFlightStall(t *testing.T) {
	var j *journal
	stalled := time.Time{}
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		j.note(r)
		if wait := time.Until(stalled); wait > 0 {
			pass(wait)
		}
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		stalled = time.Now().Add(5 * time.Second)
		client := &http.Client{Transport: reserve.Must(New(base, evenly10(), WithMaxInFlight(4)))}
		require.Equal(t, map[int]int{200: 60}, getAll(client, "http://a", 60))
		next := 0
		for _, at := range j.times() {
			if at >= 5*time.Second && at < 6*time.Second {
				next++
			}
		}
		require.LessOrEqual(t, next, 11)
	})
}

// So it is with a limiter that saves up: in the second after a stall go at most what it holds and
// what flows in.
func TestInFlightStallAndBurst(t *testing.T) {
	var j *journal
	stalled := time.Time{}
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		j.note(r)
		if wait := time.Until(stalled); wait > 0 {
			pass(wait)
		}
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		stalled = time.Now().Add(5 * time.Second)
		limiter := reserve.Must(pace.NewBursty(10, pace.WithBurst(time.Second)))
		client := &http.Client{Transport: reserve.Must(New(base, limiter, WithMaxInFlight(8)))}
		require.Equal(t, map[int]int{200: 100}, getAll(client, "http://a", 100))
		next := 0
		for _, at := range j.times() {
			if at >= 5*time.Second && at < 6*time.Second {
				next++
			}
		}
		require.LessOrEqual(t, next, 10+10+1, "the first one is prepaid")
		require.Greater(t, next, 15)
	})
}

// A place is given back when the body is over, once.
func TestPlaceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := tripper(func(*http.Request) (*http.Response, error) { return ok("hello"), nil })
		transport := reserve.Must(New(base, reserve.Must(pace.NewBursty(unknownRate)), WithMaxInFlight(1)))
		patience := time.Hour
		do := func() (*http.Response, error) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			t.Cleanup(cancel)
			return transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://a/", nil))
		}
		first, err := do()
		require.NoError(t, err)
		patience = time.Second
		_, err = do()
		require.ErrorIs(t, err, context.DeadlineExceeded, "the only place is taken")
		patience = time.Minute
		io.ReadAll(first.Body)
		first.Body.Close()
		second, err := do()
		require.NoError(t, err)
		first.Body.Close()
		patience = time.Second
		_, err = do()
		require.Error(t, err, "closing again gives nothing back")
		second.Body.Close()
		requireIdle(t, transport)
	})
}

// In a total outage the attempts stay under 1.1 times the requests, and ten.
func TestRetryBudget(t *testing.T) {
	attempts := 0
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		attempts++
		refuseWith(w, 503)
	}, func(t *testing.T, base *http.Transport) {
		client := &http.Client{Transport: reserve.Must(New(base, reserve.Must(pace.NewBursty(1000)), WithRetries(3), WithRetryBudget(0.1)))}
		require.Equal(t, map[int]int{503: 500}, getAll(client, "http://a", 500))
		require.LessOrEqual(t, attempts, 500+500/10+10)
		require.Greater(t, attempts, 540, "the budget is used")
	})
}

// Requests that cost nothing have a place in flight, and no limit.
func TestInFlightWithoutCost(t *testing.T) {
	bubble(t, answer, func(t *testing.T, base *http.Transport) {
		client := &http.Client{Transport: reserve.Must(New(base, nil, WithMaxInFlight(1),
			WithLimit(Limit{Limiter: evenly10(), Cost: func(*http.Request) int { return 0 }})))}
		for range 3 {
			status, err := get(client, "http://a")
			require.NoError(t, err)
			require.Equal(t, 200, status)
		}
	})
}

// A retry has the place before calls that came after its own.
func TestPlacesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		base := tripper(func(r *http.Request) (*http.Response, error) {
			order = append(order, r.URL.Host)
			<-time.After(1500 * time.Millisecond) // the backoff is over before the second call is
			if r.URL.Host == "0" && len(order) == 1 {
				return status(429), nil
			}
			return ok(""), nil
		})
		transport := reserve.Must(New(base, evenlyAt(1000), WithMaxInFlight(1), WithRetries(1)))
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, fmt.Sprint("http://", i), nil))
				require.NoError(t, err)
				response.Body.Close()
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, []string{"0", "1", "0", "2", "3", "4", "5"}, order)
		requireIdle(t, transport)
	})
}

// A body that is over in any way gives its place back, once: also without Close.
func TestPlaceOfABodyThatIsNotClosed(t *testing.T) {
	for name, over := range map[string]func(body io.ReadCloser, cancel func()){
		"read to its end":  func(body io.ReadCloser, _ func()) { io.ReadAll(body) },
		"its context ends": func(_ io.ReadCloser, cancel func()) { cancel() },
		"closed":           func(body io.ReadCloser, _ func()) { body.Close() },
		"all of it": func(body io.ReadCloser, cancel func()) {
			io.ReadAll(body)
			body.Close()
			cancel()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := tripper(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("x")), Request: r}, nil
				})
				transport := reserve.Must(New(base, nil, WithMaxInFlight(1)))
				for range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					response, err := transport.RoundTrip(reserve.Must(http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)))
					require.NoError(t, err)
					over(response.Body, cancel)
					synctest.Wait()
				}
			})
		})
	}
}
