package inbound_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
)

type broken struct{ err error }

func (b broken) ReserveWithin(context.Context, int, time.Duration) (reserve.Reservation, error) {
	return reserve.Reservation{}, b.err
}

func TestAFailingTier(t *testing.T) {
	down := errors.New("redis is down")
	everybody := bucket(1, 10).Limiter()
	for _, c := range []struct {
		name   string
		tier   inbound.Tier
		status int
		err    error
	}{
		{"closed", inbound.GlobalBy("shared", broken{down}), http.StatusServiceUnavailable, down},
		{"open", inbound.GlobalBy("shared", broken{down}, inbound.FailOpen()), http.StatusOK, down},
		{"dry run", inbound.GlobalBy("shared", broken{down}, inbound.DryRun()), http.StatusOK, down},
		{"key, closed", inbound.PerKey("shared", func(*http.Request) (int, error) { return 0, down }, bucket(1, 1)), http.StatusServiceUnavailable, down},
		{"key, open", inbound.PerKey("shared", func(*http.Request) (int, error) { return 0, down }, bucket(1, 1), inbound.FailOpen()), http.StatusOK, down},
		{"no policy", inbound.PerKeyBy("shared", func(*http.Request) (int, error) { return 0, nil },
			byFunc[int](func(int) (reserve.Reserver, error) { return everybody, down })), http.StatusServiceUnavailable, down},
		{"too many keys", inbound.PerKeyBy("shared", func(*http.Request) (int, error) { return 0, nil },
			keyed.New(func(int) (*reserve.Policy, error) { return bucket(1, 1), nil }, keyed.WithMaxKeys(0))), http.StatusServiceUnavailable, keyed.ErrTooManyKeys},
	} {
		var failed []error
		m := build(t, []inbound.Tier{inbound.GlobalBy("global", everybody), c.tier},
			inbound.WithOnFailure(func(_ *http.Request, err *inbound.TierError) { failed = append(failed, err) }),
			inbound.WithXRateLimit())
		before := everybody.Stored()
		res := do(m.Handler(ok), get("", "/"))
		require.Equal(t, c.status, res.StatusCode, c.name)
		require.Equal(t, inbound.TierStats{Name: "shared", Failed: 1}, m.Stats().Tiers[1], c.name)
		require.Len(t, failed, 1, c.name)
		require.ErrorIs(t, failed[0], c.err, c.name)
		require.ErrorContains(t, failed[0], `inbound: tier "shared": `, c.name)
		if c.status != http.StatusOK {
			require.GreaterOrEqual(t, everybody.Stored(), before, c.name)
			require.Equal(t, "1", res.Header.Get("Retry-After"))
			p := problemOf(t, res)
			require.Equal(t, "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", p.Type)
			require.Empty(t, p.Violated, "a tier that fails was not violated")
			require.Equal(t, "Try again in 1 s.", p.Detail)
			require.Empty(t, res.Header.Get("RateLimit"))
			require.Empty(t, res.Header.Get("X-RateLimit-Remaining"))
			require.Contains(t, res.Header.Get("RateLimit-Policy"), `"global";q=10;w=10`)
			require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
		}
	}
}

// The answer to a request that a tier failed for, where text is wanted, and the Refusal that a handler gets.
func TestAFailingTierInText(t *testing.T) {
	var got *inbound.Refusal
	h := build(t, []inbound.Tier{inbound.GlobalBy("shared", broken{errors.New("down")}), inbound.Global("global", bucket(1, 0))},
		inbound.WithRefusal(func(w http.ResponseWriter, r *http.Request, f *inbound.Refusal) {
			got = f
			f.ServeHTTP(w, r)
		})).Handler(ok)
	r := get("", "/")
	r.Header.Set("Accept", "text/plain")
	res := do(h, r)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "Service Unavailable. Try again in 1 s.\n", string(body))
	require.Contains(t, res.Header, "Ratelimit-Policy")
	require.Empty(t, got.Tiers)
	require.Equal(t, "shared", got.Err.Tier)
	require.Equal(t, 503, got.Status)
}

// A panic goes on to its recover, and takes no permits along.
func TestAPanicIsNotSwallowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		everybody := bucket(1, 10).Limiter()
		m := build(t, []inbound.Tier{
			inbound.GlobalBy("global", everybody),
			inbound.PerKey("user", func(*http.Request) (string, error) { panic("no such user") }, bucket(1, 1)),
		})
		require.PanicsWithValue(t, "no such user", func() { do(m.Handler(ok), get("", "/")) })
		require.Equal(t, 10., everybody.Stored())
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		m = build(t, []inbound.Tier{inbound.GlobalBy("global", everybody)})
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { do(m.Handler(handler), get("", "/")) })
		require.Equal(t, 9., everybody.Stored(), "that one was let through")
	})
}

// Where clients are not to know the limits, a failure does not tell them either.
func TestAFailingTierWithoutQuotas(t *testing.T) {
	for _, opt := range [][]inbound.Option{
		{inbound.WithoutQuotas()}, {inbound.WithoutQuotas(), inbound.WithXRateLimit()},
	} {
		for want, opts := range map[int][]inbound.TierOption{503: {inbound.Quota(1, s)}, 200: {inbound.Quota(1, s), inbound.FailOpen()}} {
			h := build(t, []inbound.Tier{inbound.GlobalBy("shared", broken{errors.New("down")}, opts...)}, opt...).Handler(ok)
			res := do(h, get("", "/"))
			require.Equal(t, want, res.StatusCode)
			require.NotContains(t, res.Header, "Ratelimit-Policy")
			require.NotContains(t, res.Header, "Ratelimit")
		}
	}
}
