package outbound_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// Upstreams with limits of their own: each is charged at its own limiter and cost, what one does not serve goes to the
// other, and a call that is too large for one as well. While a limit of one is not known, one call finds it out, and
// those that wait are charged to it then.
func TestUpstreamsWithTheirOwnLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiters := map[string]*reserve.Limiter{
			"a": reserve.Must(window.New(10, time.Minute)), "b": reserve.Must(window.New(100, time.Minute)),
		}
		unknown := queue.NewPlaces(1)
		known := false
		got := map[string]int{}
		var mu sync.Mutex
		base := tripper(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, "body", string(body))
			mu.Lock()
			defer mu.Unlock()
			if got[r.URL.Host]++; r.URL.Host == "b" && !known {
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				known = true
				unknown.Resize(1 << 20)
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})
		var members []outbound.Upstream
		for _, host := range []string{"a", "b"} {
			u := outbound.Upstream{Base: mustURL("https://" + host)}
			u.Prepare = func(r *http.Request) *http.Request {
				if only := r.Header.Get("Only"); only != "" && only != host {
					return nil
				}
				return u.Address(r)
			}
			members = append(members, u)
		}
		isKnown := func(r *http.Request) bool { mu.Lock(); defer mu.Unlock(); return known || r.URL.Host == "a" }
		cost := func(r *http.Request) int {
			switch {
			case !isKnown(r):
				return 0
			case r.Header.Get("Large") != "":
				return 11
			}
			return 1
		}
		transport, err := outbound.NewUpstreams(base, members, outbound.WithLimit(outbound.Limit{
			Keyed:  func(r *http.Request) (any, reserve.Reserver) { return r.URL.Host, limiters[r.URL.Host] },
			Cost:   cost,
			Recost: cost,
		}), outbound.WithLimit(outbound.Limit{
			Keyed: func(r *http.Request) (any, reserve.Reserver) { return unknown, unknown },
			Cost: func(r *http.Request) int {
				if isKnown(r) {
					return 0
				}
				return 1
			},
		}))
		require.NoError(t, err)
		send := func(header ...string) error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://any/x", strings.NewReader("body"))
			require.NoError(t, err)
			for _, h := range header {
				r.Header.Set(h, "b")
			}
			response, err := transport.RoundTrip(r)
			if err == nil {
				require.Same(t, r, response.Request)
				response.Body.Close()
			}
			return err
		}
		begin := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { require.NoError(t, send("Only")) })
		}
		all.Wait()
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, map[string]int{"b": 50}, got)
		require.Equal(t, 51., limiters["b"].Snapshot().Level, "the first was not charged")
		for range 4 {
			require.NoError(t, send("Large"))
		}
		require.Equal(t, map[string]int{"b": 54}, got)
		for range 17 {
			require.NoError(t, send())
		}
		require.Equal(t, map[string]int{"a": 10, "b": 61}, got)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://any/x", nil)
		require.NoError(t, err)
		r.Header.Set("Only", "c")
		_, err = transport.RoundTrip(r)
		require.EqualError(t, err, "outbound: the request is https://any/x; want one that an upstream serves")
	})
}
