package inbound_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

func TestRefusalHeadersAndBody(t *testing.T) {
	clock := clockwork.NewFakeClock()
	h := build(t, []inbound.Tier{
		inbound.PerKey("user", user, bucket(1./30, 1, reserve.WithClock(clock))),
		inbound.Global("global", bucket(1, 100, reserve.WithClock(clock))),
	}).Handler(ok)
	require.Equal(t, 200, status(h, get("ann", "/")))
	clock.Advance(500 * time.Millisecond)
	res := do(h, get("ann", "/"))
	require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	require.Equal(t, http.Header{
		"Cache-Control":    {"no-store"},
		"Content-Type":     {"application/problem+json"},
		"Ratelimit":        {`"user";r=0;t=30`},
		"Ratelimit-Policy": {`"user";q=1;w=30, "global";q=100;w=100`},
		"Retry-After":      {"30"},
	}, res.Header)
	require.Equal(t, problem{
		Type:     "https://iana.org/assignments/http-problem-types#quota-exceeded",
		Title:    "Too Many Requests",
		Status:   429,
		Detail:   "Try again in 30 s.",
		Violated: []string{"user"},
	}, problemOf(t, res))
}

func TestProblemOrText(t *testing.T) {
	h := build(t, []inbound.Tier{inbound.Global("global", bucket(1e-3, 0))}, inbound.WithJitter(0)).Handler(ok)
	for accept, problem := range map[string]bool{
		"":                         true,
		"*/*":                      true,
		"application/json":         true,
		"application/problem+json": true,
		"Application/*":            true,
		"image/png":                true, // neither is acceptable
		"text/plain;q=0.1, application/vnd.api+json":                      true,
		"text/plain, application/json":                                    true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": false, // a browser
		"text/plain":                              false,
		"Text/*":                                  false,
		"*/*;q=0.5, application/*;q=0.1":          true,
		"application/json, text/html":             true,
		"text/html | application/json":            true, // two lines
		"application/problem+json, text/*":        true,
		"text/html; level=1;q=0.3, image/*;q=0.1": false,
	} {
		r := get("", "/")
		if accept != "" {
			r.Header["Accept"] = strings.Split(accept, " | ")
		}
		res := do(h, r)
		require.Equal(t, 429, res.StatusCode)
		if problem {
			require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"), accept)
			problemOf(t, res)
			continue
		}
		require.Equal(t, "text/plain; charset=utf-8", res.Header.Get("Content-Type"), accept)
		require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, "Too Many Requests (\"global\"). Try again in 1000 s.\n", string(body), accept)
	}
}

// Retry-After is the longest wait of all tiers, also of later ones.
func TestRetryAfterIsTheLongest(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	h := build(t, []inbound.Tier{
		inbound.Global("short", bucket(1./2, 0, clock)),
		inbound.Global("fine", bucket(1, 1, clock)),
		inbound.Global("long", bucket(1./50, 0, clock)),
		inbound.Global("dry", bucket(1./99, 0, clock), inbound.DryRun()),
		inbound.Global("middle", bucket(1./7, 0, clock)),
	}).Handler(ok)
	res := do(h, get("", "/"))
	require.Equal(t, "50", res.Header.Get("Retry-After"))
	require.Equal(t, `"long";r=0;t=50`, res.Header.Get("RateLimit"))
	require.Equal(t, []string{"short", "long", "middle"}, problemOf(t, res).Violated)
}

// A request that is refused already is nothing to a limiter elsewhere, which would have
// to be asked over the network.
func TestARefusalAsksNobodyElsewhere(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	asked := 0
	elsewhere := reserverFunc(func(context.Context) { asked++ })
	h := build(t, []inbound.Tier{
		inbound.PerKey("user", user, bucket(1, 1, clock)),
		inbound.GlobalBy("elsewhere", elsewhere),
		inbound.PerKeyBy("each", user, byFunc[string](func(string) (reserve.Reserver, error) { return elsewhere, nil })),
		inbound.PerKeyBy("here", user, keyed.New(func(string) (*reserve.Policy, error) { return bucket(1./9, 1, clock), nil })),
	}).Handler(ok)
	require.Equal(t, 200, status(h, get("ann", "/")))
	require.Equal(t, 2, asked)
	res := do(h, get("ann", "/"))
	require.Equal(t, "9", res.Header.Get("Retry-After"))
	require.Equal(t, []string{"user", "here"}, problemOf(t, res).Violated)
	require.Equal(t, 2, asked)
}

// A thousand are refused at one moment; all do as they are told, and none is refused again.
func TestRefusedClientsDoNotComeBackTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{
			inbound.PerKey("user", user, bucket(1, 5)),
			inbound.Global("global", bucket(20, 20)),
		})
		h := m.Handler(ok)
		told := map[string]int{}
		for i := range 620 {
			name := fmt.Sprint("user", i)
			if res := do(h, get(name, "/")); res.StatusCode != 200 {
				after, err := strconv.Atoi(res.Header.Get("Retry-After"))
				require.NoError(t, err)
				told[name] = after
			}
		}
		require.Len(t, told, 600)
		for second := 1; second <= 30; second++ {
			time.Sleep(s)
			back := 0
			for name, after := range told {
				if after == second {
					back++
					require.Equal(t, 200, status(h, get(name, "/")), "%s after %d s", name, after)
				}
			}
			require.Equal(t, 20, back, "at %d s", second)
		}
	})
}

// Clients that never come back make the others wait for a minute longer, no more,
// and these still don't come back together.
func TestALineHasAnEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := build(t, []inbound.Tier{inbound.Global("global", bucket(20, 0))}).Handler(ok)
		told := map[string]int{}
		for range 6000 {
			told[do(h, get("", "/")).Header.Get("Retry-After")]++
		}
		require.Len(t, told, 61) // 1 to 61
		for after, n := range told {
			require.Less(t, n, 110, after)
		}
		time.Sleep(2 * time.Minute)
		require.Equal(t, "1", do(h, get("", "/")).Header.Get("Retry-After"))
	})
}

// Clients that are refused by limiters of their own are told different times.
func TestSpreadOfKeys(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	for _, c := range []struct {
		every    float64 // seconds
		opt      inbound.Option
		min, max int
	}{
		{0.5, inbound.WithJitter(3 * s), 1, 4},
		{10, inbound.WithJitter(3 * s), 10, 13},
		{100, inbound.WithJitter(3 * s), 100, 125},
		{10, inbound.WithJitter(0), 10, 10},
		{10, inbound.WithJitter(20 * s), 10, 30},
	} {
		h := build(t, []inbound.Tier{inbound.PerKey("user", user, bucket(1/c.every, 0, clock))}, c.opt).Handler(ok)
		told := map[int]int{}
		for i := range 1000 {
			after, err := strconv.Atoi(do(h, get(fmt.Sprint(i), "/")).Header.Get("Retry-After"))
			require.NoError(t, err)
			told[after]++
		}
		for after, n := range told {
			require.GreaterOrEqual(t, after, c.min)
			require.LessOrEqual(t, after, c.max)
			require.LessOrEqual(t, n, 1+1000/max(1, c.max-c.min), "%d, of %v", after, told)
		}
		require.GreaterOrEqual(t, len(told), c.max-c.min, told)
	}
}

func TestOverload(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	server := inbound.Global("server", bucket(1, 0, clock), inbound.Overload())
	for want, tiers := range map[int][]inbound.Tier{
		503: {inbound.Global("user", bucket(1, 1, clock)), server},
		429: {server, inbound.Global("user", bucket(1, 0, clock))},
	} {
		res := do(build(t, tiers).Handler(ok), get("", "/"))
		require.Equal(t, want, res.StatusCode)
		kind := map[int]string{503: "temporary-reduced-capacity", 429: "quota-exceeded"}[want]
		require.Equal(t, "https://iana.org/assignments/http-problem-types#"+kind, problemOf(t, res).Type)
	}
}

func TestRefusalOfOnesOwn(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	var got *inbound.Refusal
	h := build(t, []inbound.Tier{inbound.Global("global", bucket(0.1, 0, clock))},
		inbound.WithRefusal(func(w http.ResponseWriter, r *http.Request, f *inbound.Refusal) {
			got = f
			w.Header().Del("RateLimit")
			w.WriteHeader(http.StatusTeapot)
		})).Handler(ok)
	res := do(h, get("", "/"))
	require.Equal(t, http.StatusTeapot, res.StatusCode)
	require.Equal(t, "10", res.Header.Get("Retry-After"))
	require.Empty(t, res.Header.Get("RateLimit"))
	require.Equal(t, 429, got.Status)
	require.Equal(t, []string{"global"}, got.Tiers)
	require.Equal(t, 10*s, got.Wait)
	require.Equal(t, 10, got.RetryAfter)
	var wait *reserve.WaitError
	require.ErrorAs(t, got.Err, &wait)
	require.Equal(t, 10*s, wait.Wait)
}

// A cost that no window allows is refused, and does not pass a tier that fails open.
func TestACostThatIsTooLarge(t *testing.T) {
	h := build(t, []inbound.Tier{inbound.Global("global", reserve.Must(window.Policy(5, s)), inbound.FailOpen())},
		inbound.WithCost(func(*http.Request) int { return 6 })).Handler(ok)
	res := do(h, get("", "/"))
	require.Equal(t, 413, res.StatusCode)
	require.Empty(t, res.Header.Get("Retry-After"))
}

// A handler that adds to one header of a refusal changes no other.
func TestRefusalHeadersAreNotShared(t *testing.T) {
	for _, tier := range []inbound.Tier{inbound.Global("global", bucket(0.1, 0)), inbound.GlobalBy("global", broken{io.EOF})} {
		h := build(t, []inbound.Tier{tier, inbound.Global("other", bucket(1, 1))}, inbound.WithJitter(0), inbound.WithRefusal(
			func(w http.ResponseWriter, r *http.Request, f *inbound.Refusal) {
				for _, name := range []string{"Cache-Control", "Retry-After", "RateLimit", "RateLimit-Policy"} {
					w.Header().Add(name, "more")
				}
				f.ServeHTTP(w, r)
			})).Handler(ok)
		res := do(h, get("", "/"))
		require.Equal(t, []string{"no-store", "more"}, res.Header["Cache-Control"])
		require.Len(t, res.Header["Retry-After"], 2)
		require.Regexp(t, "^[0-9]+$", res.Header["Retry-After"][0])
		require.Equal(t, "more", res.Header["Ratelimit"][len(res.Header["Ratelimit"])-1])
		require.Contains(t, res.Header["Ratelimit-Policy"][0], `"other";q=1;w=1`)
	}
}
