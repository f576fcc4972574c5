package outbound_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// longCalls is a limit of five long calls, and any number of short ones.
func longCalls() outbound.Limit {
	return outbound.Limit{Name: "concurrency", InFlight: 5, Cost: func(r *http.Request) int {
		return strings.Count(r.URL.Path, "long")
	}}
}

// Five long calls are out at a time, and any number of short ones; short ones don't wait for long ones.
func TestLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		var now, most, short int
		server := tripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/long" {
				mu.Lock()
				defer mu.Unlock()
				short++
				require.Zero(t, time.Since(begin))
				return replyWith(200, ""), nil
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return replyWith(200, ""), nil
		})
		transport, err := outbound.New(server, nil, outbound.WithLimit(longCalls()))
		require.NoError(t, err)
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				status, err := roundTrip(t.Context(), transport, []string{"long", "short"}[i%2])
				require.NoError(t, err)
				require.Equal(t, 200, status)
			})
		}
		all.Wait()
		require.Equal(t, 5, most)
		require.Equal(t, 20, short)
		require.Equal(t, 4*time.Second, time.Since(begin))
	})
}

// A refusal because of too many in flight stops no rate: only the refused call waits.
func TestTooManyInFlightStopsNoRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		sent := 0
		server := tripper(func(*http.Request) (*http.Response, error) {
			if sent++; sent == 1 {
				return replyWith(429, "", "Retry-After", "30", "Stripe-Rate-Limited-Reason", "concurrency"), nil
			}
			return replyWith(200, ""), nil
		})
		rate := evenly(10)
		var told []string
		transport, err := outbound.New(server, rate, outbound.WithLimit(longCalls()), outbound.WithRetries(1), outbound.Adaptive(),
			outbound.WithHooks(outbound.Hooks{Throttled: func(_ *http.Response, limit string, _ time.Duration) { told = append(told, limit) }}))
		require.NoError(t, err)
		var all sync.WaitGroup
		call := func(path string, want time.Duration) {
			all.Go(func() {
				status, err := roundTrip(context.WithoutCancel(t.Context()), transport, path)
				require.NoError(t, err)
				require.Equal(t, 200, status)
				require.Equal(t, want, time.Since(begin))
			})
			synctest.Wait()
		}
		call("long", 30*time.Second)
		call("short", 100*time.Millisecond)
		call("long", 200*time.Millisecond)
		all.Wait()
		require.Equal(t, []string{"concurrency"}, told)
		require.InDelta(t, 10, rate.Rate(), 1e-9)
	})
}

// What makes no sense is refused.
func TestBadInFlight(t *testing.T) {
	for _, l := range []outbound.Limit{
		{InFlight: -1},
		{Key: outbound.Host},
		{InFlight: 1, Limiter: evenly(1)},
		{InFlight: 1, Penalty: time.Second},
	} {
		_, err := outbound.New(nil, nil, outbound.WithLimit(l))
		var bad *reserve.ValueError
		require.ErrorAs(t, err, &bad)
	}
	_, err := outbound.New(nil, nil, outbound.WithLimit(longCalls()), outbound.WithLimit(longCalls()))
	require.Error(t, err)
}
