package outbound

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A request goes to the upstream that serves it, whichever that is: never to the caller's own URL.
func TestUpstreamThatServes(t *testing.T) {
	for none := range 2 {
		var upstreams []Upstream
		for i := range 2 {
			upstreams = append(upstreams, Upstream{
				Base: reserve.Must(url.Parse("https://a/")),
				Prepare: func(r *http.Request) *http.Request {
					if i == none {
						return nil
					}
					prepared := r.Clone(r.Context())
					prepared.URL = reserve.Must(url.Parse("https://served/"))
					return prepared
				},
			})
		}
		var hosts []string
		transport := reserve.Must(NewUpstreams(tripper(func(r *http.Request) (*http.Response, error) {
			hosts = append(hosts, r.URL.Host)
			return ok(""), nil
		}), upstreams))
		_, err := transport.RoundTrip(reserve.Must(http.NewRequest(http.MethodGet, "https://caller/x", nil)))
		require.NoError(t, err)
		require.Equal(t, []string{"served"}, hosts, "upstream %d does not serve it", none)
	}
}

// A Waiting hook that panics gives back what its call was granted.
func TestWaitingHookPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := reserve.Must(New(tripper(func(*http.Request) (*http.Response, error) { return ok(""), nil }),
			reserve.Must(pace.NewBursty(1, pace.WithBurst(0))), WithMaxInFlight(1),
			WithHooks(Hooks{Waiting: func(r *http.Request, _ Waiting) {
				if r.URL.Path == "/1" {
					panic("a hook")
				}
			}})))
		var all sync.WaitGroup
		for _, path := range []string{"/0", "/1", "/2", "/3"} {
			all.Go(func() {
				defer func() {
					if value := recover(); path == "/1" {
						require.NotNil(t, value)
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				request := reserve.Must(http.NewRequestWithContext(ctx, http.MethodGet, "https://a"+path, nil))
				response, err := transport.RoundTrip(request)
				require.NoError(t, err, path)
				require.NoError(t, response.Body.Close())
			})
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
	})
}
