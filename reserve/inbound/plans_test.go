package inbound_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// planTier makes limiters by the plan of each user, and a tier of them.
func planTier() inbound.Tier {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	policies := map[string]*reserve.Policy{
		"free":      reserve.Must(window.Policy(2, time.Minute, clock)),
		"paid":      bucket(100, 100, clock),
		"unlimited": reserve.Must(pace.Bursty(inf, clock)),
	}
	plan := func(user string) (*reserve.Policy, error) {
		if p := policies[user]; p != nil {
			return p, nil
		}
		return nil, errors.New("no such user")
	}
	return inbound.PerKeyBy("user", user, keyed.New(plan))
}

// The quota fields say the key's own policy, whatever finds its limiter; of a key without a limit
// they say nothing.
func TestQuotasOfPlans(t *testing.T) {
	h := build(t, []inbound.Tier{planTier()}, inbound.WithXRateLimit()).Handler(ok)
	for _, want := range []struct {
		user, policy, limit, x string
		status                 int
	}{
		{"free", `"user";q=2;w=60`, `"user";r=1;t=1`, "2", 200},
		{"paid", `"user";q=100;w=1`, `"user";r=199;t=1`, "100", 200},
		{"unlimited", "", "", "", 200},
		{"free", `"user";q=2;w=60`, `"user";r=1;t=60`, "2", 200},
		{"free", `"user";q=2;w=60`, `"user";r=0;t=60`, "2", 429},
	} {
		res := do(h, get(want.user, "/"))
		require.Equal(t, want.status, res.StatusCode)
		require.Equal(t, want.policy, res.Header.Get("RateLimit-Policy"), want.user)
		require.Equal(t, want.limit, res.Header.Get("RateLimit"), want.user)
		require.Equal(t, want.x, res.Header.Get("X-RateLimit-Limit"), want.user)
	}
}

// Beside a tier for all, only the user's own part of the fields differs.
func TestQuotasOfPlansAndOfAll(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	h := build(t, []inbound.Tier{planTier(), inbound.Global("all", bucket(5, 5, clock))}).Handler(ok)
	for user, policy := range map[string]string{"free": `"user";q=2;w=60, `, "paid": `"user";q=100;w=1, `, "unlimited": ""} {
		res := do(h, get(user, "/"))
		require.Equal(t, policy+`"all";q=5;w=1`, res.Header.Get("RateLimit-Policy"), user)
	}
	res := do(h, get("unlimited", "/"))
	require.Equal(t, `"all";r=6;t=1`, res.Header.Get("RateLimit"))
}

// A limit for all that is none is not in the fields either.
func TestUnlimitedSaysNothing(t *testing.T) {
	h := build(t, []inbound.Tier{inbound.Global("all", reserve.Must(pace.Bursty(inf)))}, inbound.WithXRateLimit()).Handler(ok)
	res := do(h, get("", "/"))
	for name := range res.Header {
		require.NotContains(t, strings.ToLower(name), "ratelimit")
	}
}

// A middleware in another one adds its fields to the fields that are there.
func TestNestedMiddlewares(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	tight := build(t, []inbound.Tier{inbound.Global("tight", bucket(5, 5, clock))}, inbound.WithXRateLimit())
	wide := build(t, []inbound.Tier{inbound.Global("wide", bucket(50, 50, clock))}, inbound.WithXRateLimit())
	for name, h := range map[string]http.Handler{
		"tight outside": tight.Handler(wide.Handler(ok)), "tight inside": wide.Handler(tight.Handler(ok)),
	} {
		res := do(h, get("", "/"))
		require.Len(t, res.Header["Ratelimit"], 2, name)
		require.Len(t, res.Header["Ratelimit-Policy"], 2, name)
		require.ElementsMatch(t, []string{`"tight";q=5;w=1`, `"wide";q=50;w=1`}, res.Header["Ratelimit-Policy"], name)
		require.Equal(t, "5", res.Header.Get("X-RateLimit-Limit"), name)
		require.Len(t, res.Header["X-Ratelimit-Remaining"], 1, name)
	}
}

// Also to those of one that knows a policy and nothing more.
func TestNestedInOneThatKnowsLittle(t *testing.T) {
	outer := build(t, []inbound.Tier{inbound.PerKeyBy("far", user, byFunc[string](func(string) (reserve.Reserver, error) {
		return reserve.All(), nil
	}), inbound.Quota(7, time.Minute))})
	inner := build(t, []inbound.Tier{inbound.Global("near", bucket(5, 5))})
	res := do(outer.Handler(inner.Handler(ok)), get("ann", "/"))
	require.Equal(t, []string{`"far";q=7;w=60`, `"near";q=5;w=1`}, res.Header["Ratelimit-Policy"])
	require.Len(t, res.Header["Ratelimit"], 1)

	// The same one twice says its policy once.
	res = do(inner.Handler(inner.Handler(ok)), get("", "/"))
	require.Equal(t, []string{`"near";q=5;w=1`}, res.Header["Ratelimit-Policy"])
}

// A request that could never pass, whatever it waits for, is not told to come back.
func TestCostsThatAreNeverToBeHad(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	for name, tiers := range map[string][]inbound.Tier{
		"one":   {inbound.Global("w", reserve.Must(window.Policy(10, s, clock)))},
		"later": {inbound.Global("first", bucket(1, 0, clock)), inbound.Global("w", reserve.Must(window.Policy(10, s, clock)))},
	} {
		h := build(t, tiers, inbound.WithXRateLimit(), inbound.WithCost(func(*http.Request) int { return 11 })).Handler(ok)
		res := do(h, get("", "/"))
		require.Equal(t, 413, res.StatusCode, name)
		require.Empty(t, res.Header.Get("Retry-After"))
		require.Empty(t, res.Header.Get("RateLimit"))
		require.Empty(t, res.Header.Get("X-RateLimit-Reset"))
		require.NotEmpty(t, res.Header.Get("RateLimit-Policy"))
		p := problemOf(t, res)
		require.Equal(t, "about:blank", p.Type)
		require.Contains(t, p.Violated, "w")
		require.NotContains(t, p.Detail, "Try again")
	}
}

// What a client sends as its key takes a bounded number of bytes while it is remembered.
func TestLongKeys(t *testing.T) {
	type token string
	type account struct{ Tenant, User string }
	const users, long = 15, 900_000
	text := func(i int) string { return fmt.Sprintf("%0*d", long, i) }
	key := func(r *http.Request) string { return r.Header.Get("User") }
	policy := bucket(0.001, 1)
	for name, tier := range map[string]inbound.Tier{
		"string": inbound.PerKey("t", func(r *http.Request) (string, error) { return key(r), nil }, policy),
		"token":  inbound.PerKey("t", func(r *http.Request) (token, error) { return token(key(r)), nil }, policy),
		"pair":   inbound.PerKey("t", inbound.Both(user, user), policy),
		"struct": inbound.PerKey("t", func(r *http.Request) (account, error) { return account{"a", key(r)}, nil }, policy),
		"part":   inbound.PerKey("t", func(r *http.Request) (string, error) { return key(r)[long-20:], nil }, policy),
	} {
		t.Run(name, func(t *testing.T) {
			h := build(t, []inbound.Tier{tier}).Handler(ok)
			before := heap()
			for i := range users {
				require.Equal(t, 200, status(h, get(text(i), "/")))
			}
			require.Less(t, heap()-before, users*long/10)
			for i := range users { // and they are told apart, and known again
				require.Equal(t, 429, status(h, get(text(i), "/")), i)
			}
		})
	}
}
