package outbound_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
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
	"github.com/nextfree/pace/reserve/pool"
)

func mustURL(s string) *url.URL { return reserve.Must(url.Parse(s)) }

func keyed10(rates ...float64) (members []outbound.Upstream) {
	for i, rate := range rates {
		name := string(rune('a' + i))
		members = append(members, outbound.Upstream{
			Base: mustURL("https://" + name + ".example/v1"), Header: http.Header{"Authorization": {"Bearer " + name}},
			By: reserve.Must(pace.NewBursty(rate, pace.WithBurst(0))),
		})
	}
	return
}

// Upstreams of 10, 5 and 1 a second serve as 16 a second do.
func TestUpstreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		counts := map[string]int{}
		base := tripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			counts[r.URL.Host+r.Header.Get("Authorization")]++
			return replyWith(200, ""), nil
		})
		transport, err := outbound.NewUpstreams(base, keyed10(10, 5, 1))
		require.NoError(t, err)
		var all sync.WaitGroup
		begin := time.Now()
		for range 1600 {
			all.Go(func() {
				response, err := transport.RoundTrip(requestOf(t.Context(), "", 1))
				require.NoError(t, err)
				response.Body.Close()
			})
		}
		all.Wait()
		require.LessOrEqual(t, time.Since(begin), 101*time.Second)
		require.Equal(t, map[string]int{"a.exampleBearer a": 1000, "b.exampleBearer b": 500, "c.exampleBearer c": 100}, counts)
	})
}

// A refused call goes to the next upstream at once, with its body, without WithRetries; the one that refused is stopped, and nobody waits for it.
func TestUpstreamRefuses(t *testing.T) {
	for _, classes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			begin := time.Now()
			refusals, late := 0, 0
			bodies := map[string]int{}
			base := tripper(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				r.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				if since := time.Since(begin); r.URL.Host == "b.example" && since >= 5*time.Second && since < 65*time.Second {
					refusals++
					return replyWith(429, "", "Retry-After", "60"), nil
				}
				bodies[string(body)]++
				return replyWith(200, ""), nil
			})
			var opts []outbound.Option
			if classes {
				opts = append(opts, outbound.WithClasses(nil, fair.Class{}))
			}
			transport, err := outbound.NewUpstreams(base, keyed10(10, 10, 10), opts...)
			require.NoError(t, err)
			var all sync.WaitGroup
			for i := range 600 {
				all.Go(func() {
					body := fmt.Sprint("body ", i)
					r, err := http.NewRequestWithContext(t.Context(), "POST", "http://any/chat", strings.NewReader(body))
					require.NoError(t, err)
					response, err := transport.RoundTrip(r)
					require.NoError(t, err)
					require.Equal(t, 200, response.StatusCode)
					if time.Since(begin) > 28*time.Second {
						mu.Lock()
						late++
						mu.Unlock()
					}
				})
			}
			all.Wait()
			require.Len(t, bodies, 600, "none is lost")
			require.Equal(t, 1, refusals, "one refusal an event")
			require.Zero(t, late, "%v", time.Since(begin)) // 150 in 5 s, and 450 at 20/s
		})
	}
}

// If all are stopped, a call waits for the earliest, or is told how long that takes. What can't be sent again is the answer.
func TestAllUpstreamsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		base := tripper(func(r *http.Request) (*http.Response, error) {
			after := map[string]string{"a.example": "20", "b.example": "10"}[r.URL.Host]
			if time.Since(begin) >= 10*time.Second {
				return replyWith(200, r.URL.Host), nil
			}
			return replyWith(429, r.URL.Host, "Retry-After", after), nil
		})
		transport, err := outbound.NewUpstreams(base, keyed10(100, 100))
		require.NoError(t, err)
		response, err := transport.RoundTrip(requestOf(t.Context(), "", 1))
		require.NoError(t, err)
		require.Equal(t, 429, response.StatusCode, "each of them was tried once")
		require.Zero(t, time.Since(begin).Round(100*time.Millisecond))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = transport.RoundTrip(requestOf(short, "", 1))
		var wait *reserve.WaitError
		require.ErrorAs(t, err, &wait)
		require.Equal(t, 10*time.Second, wait.Wait.Round(100*time.Millisecond))
		response, err = transport.RoundTrip(requestOf(t.Context(), "", 1))
		require.NoError(t, err)
		body, _ := io.ReadAll(response.Body)
		require.Equal(t, "b.example", string(body))
		require.Equal(t, 10*time.Second, time.Since(begin).Round(100*time.Millisecond))
	})
}

// The URL, the host, headers, redirects and cookies.
func TestUpstreamURLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		base := tripper(func(r *http.Request) (*http.Response, error) {
			seen = append(seen, fmt.Sprint(r.URL, " ", r.Host, " ", r.Header.Get("Authorization"), r.Header.Get("Cookie")))
			switch r.URL.Path {
			case "/v1/relative":
				return replyWith(307, "", "Location", "/v1/next?x=1", "Set-Cookie", "session=secret"), nil
			case "/v1/absolute":
				return replyWith(307, "", "Location", "https://a.example/v1/next"), nil
			case "/v1/foreign":
				return replyWith(307, "", "Location", "https://foreign.example/v1/hop"), nil
			case "/v1/hop":
				return replyWith(307, "", "Location", "/v1/end"), nil
			}
			return replyWith(200, ""), nil
		})
		members := keyed10(100)
		members[0].Base = mustURL("https://a.example/v1?api-version=3")
		transport, err := outbound.NewUpstreams(base, members)
		require.NoError(t, err)
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		client := &http.Client{Transport: transport, Jar: jar}
		for path, want := range map[string][]string{
			"/a%2Fb?q=1": {"https://a.example/v1/a%2Fb?api-version=3&q=1  Bearer a"},
			"":           {"https://a.example/v1?api-version=3  Bearer a"},
			"/relative": {
				"https://a.example/v1/relative?api-version=3  Bearer a", "https://a.example/v1/next?api-version=3&x=1  Bearer a",
			},
			"/absolute": {
				"https://a.example/v1/absolute?api-version=3  Bearer a", "https://a.example/v1/next?api-version=3  Bearer a",
			},
			"/foreign": {
				"https://a.example/v1/foreign?api-version=3  Bearer a", "https://foreign.example/v1/hop  ", "https://foreign.example/v1/end  ",
			},
		} {
			seen = nil
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://caller"+path, nil)
			require.NoError(t, err)
			response, err := client.Do(r)
			require.NoError(t, err, path)
			require.Equal(t, want, seen)
			require.Empty(t, response.Request.Header.Get("Authorization"))
			require.Empty(t, r.Header)
		}
	})
}

// A conversation stays with the upstream that knows it; lower tiers first.
func TestUpstreamTiersAndKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hosts []string
		base := tripper(func(r *http.Request) (*http.Response, error) {
			hosts = append(hosts, r.URL.Host[:1])
			return replyWith(200, ""), nil
		})
		members := keyed10(10, 10, 10)
		members[0].Tier = 1
		transport, err := outbound.NewUpstreams(base, members)
		require.NoError(t, err)
		for range 3 {
			response, err := transport.RoundTrip(requestOf(t.Context(), "", 1))
			require.NoError(t, err)
			response.Body.Close()
		}
		require.Equal(t, []string{"b", "c", "a"}, hosts)
		hosts = nil
		for range 4 {
			time.Sleep(time.Second)
			response, err := transport.RoundTrip(requestOf(pool.WithKey(t.Context(), "k"), "", 0))
			require.NoError(t, err)
			response.Body.Close()
		}
		require.Equal(t, []string{"b", "b", "b", "b"}, hosts)
	})
}

func TestUpstreamsInput(t *testing.T) {
	_, err := outbound.NewUpstreams(nil, nil)
	require.EqualError(t, err, "outbound: the number of upstreams is 0; want at least 1")
	_, err = outbound.NewUpstreams(nil, []outbound.Upstream{{Base: mustURL("/x")}})
	require.EqualError(t, err, "outbound: Base of upstream 0 is /x; want a URL with a scheme and a host")
	_, err = outbound.NewUpstreams(nil, []outbound.Upstream{{Base: mustURL("http://x"), By: (*reserve.Limiter)(nil)}})
	require.EqualError(t, err, "outbound: By of upstream 0 is <nil>; want a Reserver, or nil without a type")
	_, err = outbound.NewUpstreams(nil, []outbound.Upstream{{Base: mustURL("http://x")}})
	require.NoError(t, err)
}

// A credential reaches no other upstream: not in a redirect's query either, wherever the server has put it, and a header
// takes the place of the request's, however it is written.
func TestUpstreamCredentialsStay(t *testing.T) {
	var got []string
	base := tripper(func(r *http.Request) (*http.Response, error) {
		got = append(got, fmt.Sprint(r.URL.Host, "?", r.URL.RawQuery, " ", r.Header["Api-Key"], r.Header["api-key"])) //lint:ignore SA1008 that is what is tested
		response := replyWith(200, "")
		if len(got) == 1 {
			response = replyWith(307, "")
			response.Header.Set("Location", "/v1/next?page=2&key=of%2fa&sort=up")
		}
		return response, nil
	})
	members := keyed10(1, 1)
	members[0].Base, members[0].Header = mustURL("https://a.example/v1?key=of/a"), http.Header{"api-key": {"a"}}
	members[1].Base, members[1].Header = mustURL("https://b.example/v1?key=of/b"), http.Header{"api-key": {"b"}}
	transport, err := outbound.NewUpstreams(base, members)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://any.example/first?page=1", nil)
	require.NoError(t, err)
	r.Header.Set("Api-Key", "the caller's")
	response, err := (&http.Client{Transport: transport}).Do(r)
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, []string{
		"a.example?key=of/a&page=1 [a] []", "b.example?key=of/b&page=2&sort=up [b] []",
	}, got)
}

// A redirect out of the upstream's own path is followed as it is: at the same address, without the credential, also where
// the caller's URL names the upstream's host.
func TestRedirectOutOfTheBase(t *testing.T) {
	var seen []string
	base := tripper(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, r.URL.String()+" "+r.Header.Get("Authorization"))
		if r.URL.Path == "/v1/old" {
			return replyWith(307, "", "Location", "https://a.example/status"), nil
		}
		return replyWith(200, ""), nil
	})
	transport := reserve.Must(outbound.NewUpstreams(base, keyed10(100))) // https://a.example/v1
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://a.example/old", nil)
	require.NoError(t, err)
	response, err := (&http.Client{Transport: transport}).Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, []string{"https://a.example/v1/old Bearer a", "https://a.example/status "}, seen)
}

// A URL that is opaque names no other host to a proxy: the upstream's credential would reach that.
func TestUpstreamOfAnOpaqueURL(t *testing.T) {
	base := tripper(func(r *http.Request) (*http.Response, error) {
		require.Empty(t, r.URL.Opaque)
		require.Equal(t, "a.example", r.URL.Host)
		return replyWith(200, ""), nil
	})
	transport := reserve.Must(outbound.NewUpstreams(base, keyed10(100)))
	r, err := http.NewRequestWithContext(t.Context(), "GET", "https://api.test/x", nil)
	require.NoError(t, err)
	r.URL.Opaque = "//evil.example/x"
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
}
