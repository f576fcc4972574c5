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

// Calls to two upstreams wait for a place in flight that they share, also with a deadline.
func TestUpstreamsWithMaxInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		transport, err := outbound.NewUpstreams(tripper(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return replyWith(200, ""), nil
		}), []outbound.Upstream{{Base: mustURL("https://a")}, {Base: mustURL("https://b")}}, outbound.WithMaxInFlight(1))
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get("https://any/x")
				require.NoError(t, err)
				response.Body.Close()
			})
		}
		all.Wait()
		require.Equal(t, 5*time.Second, time.Since(begin))
	})
}
