package outbound_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound"
)

// taking is a server that reads each request, and breaks the connection instead of answering.
func taking(t *testing.T, taken *atomic.Int64) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		taken.Add(1)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// A request that a broken connection may have delivered goes on to the next upstream only if that does no harm. One that
// was never sent goes on with any method.
func TestBrokenConnection(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	key := http.Header{"Idempotency-Key": {"order 7"}}
	for name, c := range map[string]struct {
		method string
		header http.Header
		opts   []outbound.Option
		closed bool // the first upstream's port is
		served bool // by the second one
	}{
		"an order":                        {method: "POST"},
		"a change":                        {method: "PATCH"},
		"an order, by choice":             {method: "POST", opts: []outbound.Option{outbound.RetryNonIdempotent()}, served: true},
		"an order with a key":             {method: "POST", header: key, served: true},
		"PUT":                             {method: "PUT", served: true},
		"DELETE":                          {method: "DELETE", served: true},
		"GET":                             {method: "GET", served: true},
		"an order, never connected":       {method: "POST", closed: true, served: true},
		"a change, never connected":       {method: "PATCH", closed: true, served: true},
		"an order, never connected, once": {method: "POST", closed: true, served: true, opts: []outbound.Option{outbound.WithRetries(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			var taken, served atomic.Int64
			first := taking(t, &taken).URL
			if c.closed {
				first = closed.URL
			}
			second := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
			defer second.Close()
			base := &http.Transport{DisableKeepAlives: true} // net/http itself repeats on connections that were used before
			transport, err := outbound.NewUpstreams(base, []outbound.Upstream{
				{Base: address(first)}, {Base: address(second.URL), Tier: 1},
			}, c.opts...)
			require.NoError(t, err)
			r, err := http.NewRequestWithContext(t.Context(), c.method, "http://any/orders", strings.NewReader("one"))
			require.NoError(t, err)
			for name := range c.header {
				r.Header.Set(name, c.header.Get(name))
			}
			response, err := transport.RoundTrip(r)
			if err == nil {
				response.Body.Close()
			}
			if c.served {
				require.NoError(t, err)
				require.EqualValues(t, 1, served.Load())
			} else {
				require.Error(t, err)
				require.EqualValues(t, 0, served.Load(), "taken twice")
			}
			if !c.closed {
				require.GreaterOrEqual(t, taken.Load(), int64(1))
			}
		})
	}
}
