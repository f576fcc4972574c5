package llm

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve/outbound"
)

// Keys that are forgotten take no memory, even with retries and after refusals.
func TestForgottenKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 200
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			if status++; status%2 == 0 {
				return says(429, "{}", "Retry-After: 1")
			}
			return used(1, 1)
		}), OpenAI(), Limits{RequestsPerMinute: 5, TokensPerMinute: 1e6}, WithMaxKeys(10), WithOutbound(outbound.WithRetries(1)))
		require.NoError(t, err)
		memory := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := memory()
		const n = 10_000 / min(4, limitertest.Slower)
		for i := range n {
			_, err := post(transport, api, fmt.Sprintf(`{"model":"%d"}`, i))
			require.NoError(t, err)
			time.Sleep(time.Minute)
		}
		t.Log((memory() - before) / n)
		require.Less(t, (memory()-before)/n, int64(1000))
		runtime.KeepAlive(transport)
	})
}

// A key that was used a moment ago takes at most 1,800 bytes with two limits: 100,000 keys 180 MB.
func TestMemoryOfKeys(t *testing.T) {
	memory := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n = 20_000 / min(4, limitertest.Slower)
	transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), OpenAI(),
		Limits{RequestsPerMinute: 500, TokensPerMinute: 1e6}, WithMaxKeys(n))
	require.NoError(t, err)
	before := memory()
	for i := range n {
		_, err := post(transport, api, fmt.Sprintf(`{"model":"model-%d","max_tokens":10}`, i))
		require.NoError(t, err)
	}
	perKey := (memory() - before) / n
	t.Log(perKey, "bytes a key")
	require.LessOrEqual(t, perKey, int64(1800+200*min(1, limitertest.Slower-1))) // with the race detector, of fewer keys
	require.Len(t, transport.table.accounts, n)
}
