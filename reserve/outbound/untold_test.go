package outbound

import (
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

// untold are transports that nobody told a rate.
func untold(base http.RoundTripper) map[string]*Transport {
	unlimited := reserve.Must(pace.Bursty(math.Inf(1)))
	hosts := keyed.New(func(string) (*reserve.Policy, error) { return unlimited, nil })
	retries := WithRetries(9)
	return map[string]*Transport{
		"nothing":            reserve.Must(New(base, nil, retries)),
		"an unlimited one":   reserve.Must(New(base, unlimited.Limiter(), retries)),
		"unlimited keys":     reserve.Must(New(base, nil, PerKey(Host, hosts.For), retries)),
		"an All":             reserve.Must(New(base, reserve.All(unlimited.Limiter(), unlimited.Limiter()), retries)),
		"an unlimited limit": reserve.Must(New(base, nil, WithLimit(Limit{Name: "requests", Limiter: unlimited.Limiter()}), retries)),
	}
}

// Who is told no rate lets calls go as they come, and finds the rate once the server has refused one.
func TestUntold(t *testing.T) {
	for name := range untold(nil) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limited := false
				var mu sync.Mutex
				level, last, refused := 10., time.Now(), 0
				transport := untold(tripper(func(*http.Request) (*http.Response, error) {
					time.Sleep(50 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					level, last = min(10, level+50*time.Since(last).Seconds()), time.Now()
					if level--; limited && level < 0 {
						level++
						refused++
						return answered(429), nil
					}
					return answered(200), nil
				}))[name]
				require.Equal(t, 50*time.Millisecond, many(t, transport, 16), "all at once")
				require.Equal(t, math.Inf(1), transport.Snapshot().Limits[0].Rate)
				limited = true
				took := many(t, transport, 1500)
				require.Less(t, took, 36*time.Second, "30 s at 50 a second")
				require.Less(t, refused, 45)
				require.InDelta(t, 50, transport.Snapshot().Limits[0].Rate, 15)
			})
		})
	}
}

// The caller's own limiter is left alone. A rate that is set later is told.
func TestUntoldBecomesTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 429
		limiter := reserve.Must(pace.NewBursty(math.Inf(1), pace.WithBurst(0)))
		transport := reserve.Must(New(tripper(func(*http.Request) (*http.Response, error) { return answered(status), nil }), limiter))
		client := &http.Client{Transport: transport}
		rate := func() float64 { return transport.Snapshot().Limits[0].Rate }
		get(client, "http://a/")
		require.Less(t, rate(), 20., "it is found")
		require.Equal(t, math.Inf(1), limiter.Rate())

		status = 200
		require.NoError(t, limiter.SetRate(30))
		begin := time.Now()
		for range 300 {
			get(client, "http://a/")
		}
		require.Equal(t, 10*time.Second, time.Since(begin).Round(time.Second))
		require.Equal(t, 30., rate())
	})
}
