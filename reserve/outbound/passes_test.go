package outbound_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound"
)

// A call that all free upstreams have refused holds up nobody: b is free at 30 s and a at 60 s, b has refused the first
// call, and the second one goes to b at 30 s.
func TestRefusedCallHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		refused := false
		server := tripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "b" && r.URL.Path == "/first" && !refused {
				refused = true
				return replyWith(429, "", "Retry-After", "30"), nil
			}
			return replyWith(200, ""), nil
		})
		a, b := evenly(100), evenly(100)
		a.PauseUntil(begin.Add(60 * time.Second))
		transport, err := outbound.NewUpstreams(server, []outbound.Upstream{{Base: address("http://a"), By: a}, {Base: address("http://b"), By: b}})
		require.NoError(t, err)
		var all sync.WaitGroup
		for path, want := range map[string]time.Duration{"first": 60 * time.Second, "second": 30 * time.Second} {
			all.Go(func() {
				if path == "second" {
					time.Sleep(time.Second)
				}
				status, err := roundTrip(t.Context(), transport, path)
				require.NoError(t, err)
				require.Equal(t, 200, status)
				require.InDelta(t, want, time.Since(begin), float64(100*time.Millisecond), path)
			})
		}
		all.Wait()
	})
}
