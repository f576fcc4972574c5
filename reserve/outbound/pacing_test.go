package outbound

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// evenly10 is 10/s without anything saved up.
func evenly10() *reserve.Limiter { return reserve.Must(pace.NewBursty(10, pace.WithBurst(0))) }

func answer(http.ResponseWriter, *http.Request) {}

// Requests go at the limiter's rate, in the order in which they came.
func TestPacing(t *testing.T) {
	var j *journal
	bubble(t, func(_ http.ResponseWriter, r *http.Request) {
		j.note(r)
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		client := &http.Client{Transport: reserve.Must(New(base, evenly10()))}
		for i := range 4 {
			go get(client, fmt.Sprintf("http://a/%d", i))
			synctest.Wait()
		}
		pass(time.Second)
		require.Equal(t, ms(0, 100, 200, 300), j.times())
		require.Equal(t, []string{"/0", "/1", "/2", "/3"}, j.order())
	})
}

// What can't be sent by its deadline is refused at once, and takes nothing.
func TestDeadline(t *testing.T) {
	bubble(t, answer, func(t *testing.T, base *http.Transport) {
		limiter := evenly10()
		_, err := limiter.Acquire(t.Context(), 50) // for 5 s
		require.NoError(t, err)
		begin := time.Now()
		var refused error
		transport := reserve.Must(New(base, limiter, WithHooks(Hooks{Refused: func(_ *http.Request, err error) { refused = err }})))
		client := &http.Client{Transport: transport, Timeout: time.Second}
		b := &body{Reader: strings.NewReader("x")}
		_, err = client.Post("http://a", "text/plain", b)
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.Equal(t, 5*time.Second, wait.Wait)
		require.Equal(t, time.Second, wait.MaxWait)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, refused, context.DeadlineExceeded)
		require.Equal(t, int64(1), b.closed.Load())
		require.Zero(t, time.Since(begin))
		require.Equal(t, begin.Add(5*time.Second), limiter.NextFree())

		_, err = get(&http.Client{Transport: reserve.Must(New(base, limiter, WithMaxWait(time.Second)))}, "http://a")
		require.ErrorAs(t, err, &wait)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A request that is given up while it waits gives its permits back, and its body is
// closed.
func TestGiveUp(t *testing.T) {
	bubble(t, answer, func(t *testing.T, base *http.Transport) {
		for _, opts := range [][]Option{nil, {Adaptive()}} {
			limiter := evenly10()
			limiter.Acquire(t.Context(), 10) // for 1 s
			begin := time.Now()
			client := &http.Client{Transport: reserve.Must(New(base, limiter, opts...))}
			ctx, cancel := context.WithCancelCause(t.Context())
			b := &body{Reader: strings.NewReader("x")}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://a", b)
			require.NoError(t, err)
			done := make(chan error)
			go func() {
				_, err := client.Do(r)
				done <- err
			}()
			synctest.Wait()
			require.Equal(t, begin.Add(1100*time.Millisecond), limiter.NextFree())
			cancel(errGone)
			require.ErrorIs(t, <-done, errGone)
			require.Equal(t, begin.Add(time.Second), limiter.NextFree())
			require.Equal(t, int64(1), b.closed.Load())
			require.Zero(t, time.Since(begin))
		}
	})
}

// The base transport gets the very request, unchanged, over a real connection.
func TestRequestIsNotChanged(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got += string(b) + ";"
		if strings.Count(got, ";") == 1 {
			w.Header().Set("Retry-After", "0.001")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader("hello"))
	require.NoError(t, err)
	before, first := r.Clone(t.Context()), r.Body
	transport := reserve.Must(New(nil, evenly10(), WithRetries(1)))
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "hello;hello;", got)
	require.Equal(t, before.Header, r.Header)
	require.Equal(t, before.URL, r.URL)
	require.True(t, first == r.Body)
	require.Equal(t, before.ContentLength, r.ContentLength)
}

// A key that is stopped does not slow down another one: hosts, credentials, routes.
func TestKeys(t *testing.T) {
	policy := reserve.Must(pace.Bursty(10, pace.WithBurst(0)))
	limiters := func(string) (*reserve.Policy, error) { return policy, nil }
	route := func(r *http.Request) string { return Host(r) + r.URL.Path }
	for name, c := range map[string]struct {
		opts        []Option
		same, other func(*http.Request)
	}{
		"by default, hosts": {nil, func(*http.Request) {}, func(r *http.Request) { r.URL.Host = "b" }},
		"hosts": {[]Option{PerKey(Host, keyed.New(limiters).For)},
			func(r *http.Request) { r.URL.Host = "A:80" }, func(r *http.Request) { r.URL.Host = "a:81" }},
		"credentials": {[]Option{PerKey(Credential, keyed.New(limiters).For)},
			func(r *http.Request) { r.URL.Path = "/x" }, func(r *http.Request) { r.Header.Set("Authorization", "other") }},
		"routes": {[]Option{PerKey(Host, keyed.New(limiters).For), PerKey(route, keyed.New(limiters).For)},
			func(r *http.Request) { r.URL.RawQuery = "x" }, func(r *http.Request) { r.URL.Path = "/x" }},
		"hosts whose limiters can't be paused": {[]Option{PerKey(Host, func(host string) reserve.Reserver { return bare{evenly10()} })},
			func(*http.Request) {}, func(r *http.Request) { r.URL.Host = "b" }},
		"hosts, adaptive": {[]Option{Adaptive()}, func(*http.Request) {}, func(r *http.Request) { r.URL.Host = "b" }},
	} {
		t.Run(name, func(t *testing.T) {
			refuse := true
			bubble(t, func(w http.ResponseWriter, _ *http.Request) {
				if refuse {
					w.Header().Set("Retry-After", "60")
					w.WriteHeader(http.StatusTooManyRequests)
				}
				refuse = false
			}, func(t *testing.T, base *http.Transport) {
				transport := reserve.Must(New(base, nil, c.opts...))
				do := func(change func(*http.Request)) (took time.Duration) {
					begin := time.Now()
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a", nil)
					require.NoError(t, err)
					r.Header.Set("Authorization", "secret")
					change(r)
					response, err := transport.RoundTrip(r)
					require.NoError(t, err)
					response.Body.Close()
					return time.Since(begin)
				}
				do(func(*http.Request) {})
				require.LessOrEqual(t, do(c.other), 100*time.Millisecond)
				require.InDelta(t, time.Minute, do(c.same), float64(200*time.Millisecond))
			})
		})
	}
}

// A credential can't be told from its key.
func TestCredentialIsHashed(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "https://API.example.com/v1", nil)
	require.Equal(t, "api.example.com:443", Host(r))
	r.Header.Set("Authorization", "Bearer secret")
	require.Regexp(t, `^api\.example\.com:443#[0-9a-f]+$`, Credential(r))
	require.NotContains(t, Credential(r), "secret")
}

// Several limiters at once: all of them or none.
func TestSeveral(t *testing.T) {
	bubble(t, answer, func(t *testing.T, base *http.Transport) {
		whole, narrow := reserve.Must(pace.NewBursty(100, pace.WithBurst(0))), reserve.Must(pace.NewBursty(1, pace.WithBurst(0), reserve.WithMaxWait(0)))
		client := &http.Client{Transport: reserve.Must(New(base, whole, PerKey(Host, func(string) reserve.Reserver { return narrow })))}
		status, err := get(client, "http://a")
		require.NoError(t, err)
		require.Equal(t, 200, status)
		pass(100 * time.Millisecond)
		_, err = get(client, "http://a")
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.Equal(t, time.Now(), whole.NextFree(), "the other limiter has its permit back")
	})
}

// A cost is paid before, and settled by the response's body.
func TestCost(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.URL.Query().Get("used"))
	}, func(t *testing.T, base *http.Transport) {
		limiter := reserve.Must(pace.NewBursty(10, pace.WithBurst(0)))
		transport := reserve.Must(New(base, nil, WithLimit(Limit{
			Limiter: limiter,
			Cost:    func(r *http.Request) int { return len(r.URL.Path) },
			Used:    func(*http.Response) Usage { return new(written) },
		})))
		client := &http.Client{Transport: transport}
		for _, c := range []struct {
			path  string
			debts time.Duration
		}{
			{"/2345?used=25", 2500 * time.Millisecond}, // 5 reserved
			{"/2345?used=2", 200 * time.Millisecond},
			{"/2345?used=5", 500 * time.Millisecond},
		} {
			pass(time.Until(limiter.NextFree()))
			begin := time.Now()
			_, err := get(client, "http://a"+c.path)
			require.NoError(t, err)
			require.Equal(t, begin.Add(c.debts), limiter.NextFree(), c.path)
		}
		before := limiter.NextFree()
		_, err := get(client, "http://a") // costs nothing: it goes at once
		require.NoError(t, err)
		require.Equal(t, before, limiter.NextFree())
	})
}

// written is a usage that the body says.
type written struct{ bytes.Buffer }

func (w *written) Used() (used int, known bool) {
	n, _ := fmt.Sscan(w.String(), &used)
	return used, n == 1
}

// bare is a Reserver and nothing else.
type bare struct{ l *reserve.Limiter }

func (b bare) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	return b.l.ReserveWithin(ctx, n, maxWait)
}
