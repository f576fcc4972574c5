package matrix

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/window"
)

// README's first recipe against the server of its first picture, a bucket of 50 a second that holds 10: 300 calls from 64
// goroutines. Before, they took 20 s, 550 to 820 were refused, and a fifth was lost. Without a limiter it was 11 s.
func TestFirstRecipe(t *testing.T) {
	server := countsInBucket("a bucket of 10", func(written) float64 { return 10 }).kind(written{n: 50, per: time.Second}, true)
	recipe := func(base http.RoundTripper, _ Kind, _ Setting) *http.Client {
		limiter := reserve.Must(window.New(50, time.Second))
		return &http.Client{Transport: reserve.Must(outbound.New(base, limiter, outbound.WithRetries(3))), Timeout: time.Minute}
	}
	for _, latency := range []time.Duration{5 * time.Millisecond, 30 * time.Millisecond} {
		o := Median(t, server, Client{New: recipe}, Setting{
			Rate: 50, Burst: 10, Calls: 300, Goroutines: 64, Latency: [2]time.Duration{latency, 3 * latency},
		}, 5)
		t.Logf("%v: %.2f s (5.8 at best), %d refused, %d lost", latency, o.Seconds, o.Refused, o.Failed)
		require.True(t, o.Finished())
		require.Less(t, o.Seconds, 8.)
		require.LessOrEqual(t, o.Refused, 64)
		require.Zero(t, o.Failed)
	}
}
