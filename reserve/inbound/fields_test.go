package inbound_test

import (
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
)

// reset returns how many seconds from now X-RateLimit-Reset is.
func reset(t *testing.T, h http.Header) int64 {
	t.Helper()
	at, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
	require.NoError(t, err)
	return at - time.Now().Unix()
}

// No client is told more than a year, in any header, however long it would be: Retry-After
// must not be before the end of RateLimit's t (draft-11, section 6).
func TestAWaitWithoutEnd(t *testing.T) {
	const year = 31_536_000
	bubble(t, func(t *testing.T) {
		h := build(t, []inbound.Tier{inbound.Global("global", bucket(1e-9, 0))}, inbound.WithXRateLimit()).Handler(ok)
		res := do(h, get("", "/"))
		require.Equal(t, strconv.Itoa(year), res.Header.Get("Retry-After"))
		require.Equal(t, `"global";r=0;t=31536000`, res.Header.Get("RateLimit"))
		require.EqualValues(t, year, reset(t, res.Header))

		// Most of a year, and spread by as much again.
		h = build(t, []inbound.Tier{inbound.PerKey("user", user, bucket(1./3e7, 0))}, inbound.WithJitter(math.MaxInt64)).Handler(ok)
		for range 10 {
			after, err := strconv.Atoi(do(h, get("ann", "/")).Header.Get("Retry-After"))
			require.NoError(t, err)
			require.GreaterOrEqual(t, after, 30_000_000)
			require.LessOrEqual(t, after, year)
		}

		// A store that takes 300 centuries to fill again.
		h = build(t, []inbound.Tier{inbound.Global("global", bucket(1e-6, 1e6))}, inbound.WithXRateLimit(),
			inbound.WithCost(func(*http.Request) int { return 1e6 })).Handler(ok)
		require.Greater(t, reset(t, do(h, get("", "/")).Header), int64(year))
	})
}

// Whichever header a refused client reads, it comes back at its own time.
func TestRefusalHeadersAgree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := build(t, []inbound.Tier{inbound.PerKey("user", user, bucket(0.01, 0))}, inbound.WithXRateLimit()).Handler(ok)
		told := map[string]bool{}
		for range 20 {
			res := do(h, get("ann", "/"))
			after := res.Header.Get("Retry-After")
			told[after] = true
			require.Equal(t, `"user";r=0;t=`+after, res.Header.Get("RateLimit"))
			require.Equal(t, after, strconv.FormatInt(reset(t, res.Header), 10))
		}
		require.Greater(t, len(told), 10)
	})
}

// A key's limiter may be a global one: its headers say what it has.
func TestHeadersOfAKeysLimiter(t *testing.T) {
	clients := keyed.New(func(string) (*reserve.Policy, error) { return bucket(1, 3), nil })
	res := do(build(t, []inbound.Tier{inbound.GlobalBy("ada", clients.For("ada"))}).Handler(ok), get("", "/"))
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, res.Header.Get("RateLimit"), `"ada";r=`)
}
