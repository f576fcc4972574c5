package outbound_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound"
)

// Real servers answer requests to an upstream whose address has no path: the request's path begins with a slash.
func TestUpstreamWithoutPath(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI)
	}))
	defer server.Close()
	for base, want := range map[string]string{
		"":          "POST /chat/completions?a=b",
		"/":         "POST /chat/completions?a=b",
		"/v1":       "POST /v1/chat/completions?a=b",
		"/v1/?k=v":  "POST /v1/chat/completions?k=v&a=b",
		"/v%2F1/v2": "POST /v%2F1/v2/chat/completions?a=b",
	} {
		transport, err := outbound.NewUpstreams(nil, []outbound.Upstream{{Base: address(server.URL + base)}})
		require.NoError(t, err)
		client := &http.Client{Transport: transport}
		for _, path := range []string{"/chat/completions", "chat/completions"} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://any/", strings.NewReader("hello"))
			require.NoError(t, err)
			r.URL.Path, r.URL.RawQuery = path, "a=b"
			response, err := client.Do(r)
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			response.Body.Close()
			require.Equal(t, 200, response.StatusCode, "%s: %s", base, body)
			require.Equal(t, want, string(body))
		}
		transport.CloseIdleConnections()
	}
}

// A redirect within an upstream is one however its address is written, and goes on with the upstream's header.
func TestUpstreamAddresses(t *testing.T) {
	for _, base := range []string{"https://a.test", "https://a.test:443/", "https://A.TEST/", "HTTPS://a.test/"} {
		var seen []string
		server := tripper(func(r *http.Request) (*http.Response, error) {
			seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization"))
			if len(seen) == 1 {
				return replyWith(302, "", "Location", "https://a.test/two"), nil
			}
			return replyWith(200, ""), nil
		})
		transport, err := outbound.NewUpstreams(server, []outbound.Upstream{
			{Base: address(base), Header: http.Header{"Authorization": {"secret"}}},
		})
		require.NoError(t, err)
		response, err := (&http.Client{Transport: transport}).Get("http://any/one")
		require.NoError(t, err)
		response.Body.Close()
		require.Equal(t, []string{"/one secret", "/two secret"}, seen, base)
	}
}

// One of two real servers is down: each call is answered, whatever its method, if its body can be sent again.
func TestUpstreamDown(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer up.Close()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	transport, err := outbound.NewUpstreams(nil, []outbound.Upstream{{Base: address(down.URL)}, {Base: address(up.URL)}})
	require.NoError(t, err)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				response, err := client.Post("http://any/", "text/plain", strings.NewReader("hello"))
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				response.Body.Close()
				require.Equal(t, "hello", string(body))
			}
		})
	}
	all.Wait()
}

// two makes a transport of upstreams a and b, of which a does as it is told.
func two(t *testing.T, a func(*http.Request) (*http.Response, error)) (transport http.RoundTripper, sent func() []time.Duration) {
	var mu sync.Mutex
	var at []time.Duration
	begin := time.Now()
	server := tripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		if r.URL.Host != "a" {
			return replyWith(200, "b"), nil
		}
		mu.Lock()
		at = append(at, time.Since(begin).Truncate(100*time.Millisecond))
		mu.Unlock()
		return a(r)
	})
	transport, err := outbound.NewUpstreams(server, []outbound.Upstream{
		{Base: address("http://a")}, {Base: address("http://b"), Tier: 1},
	})
	require.NoError(t, err)
	return transport, func() []time.Duration { mu.Lock(); defer mu.Unlock(); return at }
}

// An upstream that fails rests for a second, and twice as long after each further failure, up to a minute; one call
// probes it. When it works again all calls go there.
func TestUpstreamRests(t *testing.T) {
	for name, fail := range map[string]func() (*http.Response, error){
		"broken": func() (*http.Response, error) { return nil, errBroken },
		"500":    func() (*http.Response, error) { return replyWith(500, ""), nil },
		"502":    func() (*http.Response, error) { return replyWith(502, ""), nil },
		"503":    func() (*http.Response, error) { return replyWith(503, ""), nil },
		"401":    func() (*http.Response, error) { return replyWith(401, ""), nil },
		"403":    func() (*http.Response, error) { return replyWith(403, ""), nil },
		"404":    func() (*http.Response, error) { return replyWith(404, ""), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				transport, sent := two(t, func(*http.Request) (*http.Response, error) {
					if time.Since(begin) < 200*time.Second {
						time.Sleep(50 * time.Millisecond)
						return fail()
					}
					return replyWith(200, "a"), nil
				})
				for time.Since(begin) < 300*time.Second {
					status, err := roundTrip(t.Context(), transport, "")
					require.NoError(t, err)
					require.Equal(t, 200, status)
					time.Sleep(200 * time.Millisecond)
				}
				at := sent()
				var rests []time.Duration
				for i := 1; i < len(at) && at[i-1] < 200*time.Second; i++ {
					rests = append(rests, (at[i] - at[i-1]).Round(time.Second))
				}
				s := time.Second
				require.Equal(t, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s}, rests[:9])
				require.Greater(t, len(at), 200, "after that a serves all")
			})
		})
	}
}

// While a failed upstream is probed no other call goes there, however long that takes.
func TestUpstreamProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		transport, sent := two(t, func(*http.Request) (*http.Response, error) {
			if time.Since(begin) < time.Second {
				return nil, errBroken
			}
			time.Sleep(500 * time.Millisecond)
			return replyWith(200, "a"), nil
		})
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				status, err := roundTrip(t.Context(), transport, "")
				require.NoError(t, err)
				require.Equal(t, 200, status)
			})
		}
		all.Wait()
		probes := 0
		for _, at := range sent() {
			if at >= time.Second && at < 1500*time.Millisecond {
				probes++
			}
		}
		require.Equal(t, 1, probes)
	})
}

// A status that all upstreams answer is the request's own: none rests, and each is asked once.
func TestOwnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := map[string]int{}
		server := tripper(func(r *http.Request) (*http.Response, error) {
			sent[r.URL.Host]++
			if r.URL.Path == "/missing" {
				return replyWith(404, ""), nil
			}
			return replyWith(200, ""), nil
		})
		transport, err := outbound.NewUpstreams(server, []outbound.Upstream{{Base: address("http://a")}, {Base: address("http://b")}})
		require.NoError(t, err)
		for range 10 {
			status, err := roundTrip(t.Context(), transport, "missing")
			require.NoError(t, err)
			require.Equal(t, 404, status)
			for range 2 {
				status, err = roundTrip(t.Context(), transport, "")
				require.NoError(t, err)
				require.Equal(t, 200, status)
			}
		}
		require.Equal(t, map[string]int{"a": 20, "b": 20}, sent)
	})
}

// An order that may have been taken is not placed twice: an answer 500 to a POST is the caller's.
func TestFailureOfPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, sent := two(t, func(*http.Request) (*http.Response, error) { return replyWith(500, ""), nil })
		post := func() int {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "http://any/", strings.NewReader("order"))
			require.NoError(t, err)
			response, err := transport.RoundTrip(r)
			require.NoError(t, err)
			response.Body.Close()
			time.Sleep(time.Millisecond)
			return response.StatusCode
		}
		require.Equal(t, []int{500, 500, 200, 200}, []int{post(), post(), post(), post()}, "the second failure in a row has a rest")
		require.Len(t, sent(), 2)
	})
}
