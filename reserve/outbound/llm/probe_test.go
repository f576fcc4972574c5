package llm

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// trip is a base transport that does as a function does.
type trip func(r *http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// A first call that gets no answer does not keep the others waiting without end.
func TestFirstCallHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		release := make(chan struct{})
		transport, err := New(trip(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			if n.Add(1) == 1 {
				<-release
			}
			return used(1, 1, "x-ratelimit-limit-requests: 4"), nil
		}), OpenAI(), Limits{})
		require.NoError(t, err)
		begin := time.Now()
		var all sync.WaitGroup
		all.Go(func() { post(transport, api, `{"model":"m"}`) })
		synctest.Wait()
		for range 3 {
			all.Go(func() {
				_, err := post(transport, api, `{"model":"m"}`)
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(begin), 20*time.Second)
			})
		}
		time.Sleep(time.Hour)
		close(release)
		all.Wait()
		transport.requireOver(t)
	})
}
