package inbound_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// Each tier has a cost of its own, and a request pays all of them or none.
func TestCostsOfTiers(t *testing.T) {
	clock := clockwork.NewFakeClock()
	requests := bucket(1, 10, reserve.WithClock(clock)).Limiter()
	rows := bucket(1, 100, reserve.WithClock(clock)).Limiter()
	skipped := bucket(1, 10, reserve.WithClock(clock)).Limiter()
	n := 40
	h := build(t, []inbound.Tier{
		inbound.GlobalBy("requests", requests),
		inbound.GlobalBy("rows", rows, inbound.Cost(func(*http.Request) int { return n })),
		inbound.GlobalBy("skipped", skipped, inbound.Cost(func(*http.Request) int { return 0 })),
	}, inbound.WithCost(func(*http.Request) int { return 2 })).Handler(ok)
	stored := func() [3]float64 { return [3]float64{requests.Stored(), rows.Stored(), skipped.Stored()} }
	require.Equal(t, 200, status(h, get("", "/")))
	require.Equal(t, [3]float64{8, 60, 10}, stored())
	n = 61
	res := do(h, get("", "/"))
	require.Equal(t, 429, res.StatusCode)
	require.Equal(t, []string{"rows"}, problemOf(t, res).Violated)
	require.Equal(t, [3]float64{8, 60, 10}, stored())
	n = 60
	require.Equal(t, 200, status(h, get("", "/")))
	require.Equal(t, [3]float64{6, 0, 10}, stored())
}

// login answers 401 to a wrong password.
var login = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/wrong":
		http.Error(w, "wrong password", http.StatusUnauthorized)
	case "/panic":
		panic(http.ErrAbortHandler)
	case "/large":
		_, _ = io.WriteString(w, strings.Repeat("x", 600))
		_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader(strings.Repeat("y", 400)))
	case "/slow":
		time.Sleep(s)
	}
})

// Only failed logins count, however many are tried at one moment; it is the same for each kind of
// limiter.
func TestChargeAfterFailedLogins(t *testing.T) {
	failed := inbound.ChargeAfter(func(_ *http.Request, res inbound.Response) int {
		if res.Status == http.StatusUnauthorized {
			return 1
		}
		return 0
	})
	for name, tier := range map[string]func(*reserve.Policy) inbound.Tier{
		"PerKey": func(p *reserve.Policy) inbound.Tier { return inbound.PerKey("failures", user, p, failed) },
		"Global": func(p *reserve.Policy) inbound.Tier { return inbound.Global("failures", p, failed) },
		"PerKeyBy": func(p *reserve.Policy) inbound.Tier {
			return inbound.PerKeyBy("failures", user, keyed.New(func(string) (*reserve.Policy, error) { return p, nil }), failed)
		},
	} {
		for _, kind := range []string{"window", "bucket"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					policy := bucket(1./180, 5)
					if kind == "window" {
						policy = reserve.Must(window.Policy(5, 15*time.Minute))
					}
					m := build(t, []inbound.Tier{tier(policy)})
					h := m.Handler(login)
					for range 50 {
						require.Equal(t, 200, status(h, get("ann", "/")), "a correct password costs nothing")
					}
					for range 4 {
						require.Equal(t, 401, status(h, get("ann", "/wrong")))
					}
					require.Equal(t, 200, status(h, get("ann", "/")))
					require.Equal(t, 401, status(h, get("ann", "/wrong")))
					require.Equal(t, 429, status(h, get("ann", "/")))
					require.EqualValues(t, 56, m.Stats().Allowed)
					time.Sleep(15 * time.Minute)

					reached := 0
					done := make(chan int, 100)
					for range 100 {
						go func() { done <- status(h, get("ann", "/slow")) }()
						synctest.Wait()
					}
					for range 100 {
						if <-done == 200 {
							reached++
						}
					}
					require.Equal(t, 5, reached, "of 100 at one moment")
					for range 5 {
						require.Equal(t, 200, status(h, get("ann", "/")), "and they were not charged")
					}
					require.Panics(t, func() { status(h, get("ann", "/panic")) })
					for range 4 {
						require.Equal(t, 401, status(h, get("ann", "/wrong")))
					}
					require.Equal(t, 429, status(h, get("ann", "/")), "the one that panicked paid its cost")
				})
			})
		}
	}
}

// The bytes of an answer are paid by the next request.
func TestChargeAfterBytes(t *testing.T) {
	for name, tier := range map[string]func(*reserve.Policy, ...inbound.TierOption) inbound.Tier{
		"PerKey": func(p *reserve.Policy, opts ...inbound.TierOption) inbound.Tier {
			return inbound.PerKey("bytes", user, p, opts...)
		},
		"Global": func(p *reserve.Policy, opts ...inbound.TierOption) inbound.Tier {
			return inbound.Global("bytes", p, opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clockwork.NewFakeClock()
			h := build(t, []inbound.Tier{tier(bucket(100, 100, reserve.WithClock(clock)),
				inbound.ChargeAfter(func(_ *http.Request, res inbound.Response) int {
					require.Equal(t, 200, res.Status)
					return int(res.Bytes)
				}))}, inbound.WithJitter(0)).Handler(login)
			require.Equal(t, 200, status(h, get("ann", "/large")))
			res := do(h, get("ann", "/"))
			require.Equal(t, 429, res.StatusCode)
			require.Equal(t, "10", res.Header.Get("Retry-After"), "900 are owed, at 100/s, and its own")
			clock.Advance(9*s + 10*time.Millisecond)
			require.Equal(t, 200, status(h, get("ann", "/")))
		})
	}
}

// The wrapped ResponseWriter has what net/http's has.
func TestChargeAfterKeepsTheResponseWriter(t *testing.T) {
	h := build(t, []inbound.Tier{inbound.Global("g", bucket(1, 1),
		inbound.ChargeAfter(func(*http.Request, inbound.Response) int { return 0 }))}).
		Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		}))
	server := httptest.NewServer(h)
	defer server.Close()
	res, err := http.Get(server.URL)
	require.NoError(t, err)
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	require.Equal(t, "a", string(body))
}

// Without valid credentials the answer is 401, whoever finds that out, and nothing is charged.
func TestUnauthorized(t *testing.T) {
	missing := &inbound.UnauthorizedError{Challenge: `Basic realm="api"`}
	known := func(user string) (*reserve.Policy, error) {
		switch user {
		case "ann":
			return bucket(1, 1), nil
		case "old":
			return nil, fmt.Errorf("%s: %w", user, keyed.ErrUnknown)
		}
		return nil, &inbound.UnauthorizedError{}
	}
	apiKey := func(r *http.Request) (string, error) {
		if key := r.Header.Get("User"); key != "" {
			return key, nil
		}
		return "", missing
	}
	global := bucket(1, 9).Limiter()
	before := global.Stored()
	m := build(t, []inbound.Tier{
		inbound.GlobalBy("global", global), inbound.PerKeyBy("key", apiKey, keyed.New(known), inbound.FailOpen()),
	}, inbound.WithOnFailure(func(*http.Request, *inbound.TierError) { t.Error("it is no failure") }))
	h := m.Handler(ok)
	for user, challenge := range map[string]string{"": `Basic realm="api"`, "nobody": "Bearer", "old": "Bearer"} {
		res := do(h, get(user, "/"))
		require.Equal(t, 401, res.StatusCode)
		require.Equal(t, challenge, res.Header.Get("WWW-Authenticate"))
		require.Empty(t, res.Header.Get("Retry-After"))
		require.Empty(t, res.Header.Get("RateLimit"))
		require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
		p := problemOf(t, res)
		require.Equal(t, "about:blank", p.Type)
		require.Equal(t, "Unauthorized", p.Title)
		require.Empty(t, p.Violated)
	}
	require.GreaterOrEqual(t, global.Stored(), before)
	stats := counts(m)
	require.EqualValues(t, 3, stats.Unauthorized)
	require.Zero(t, stats.Tiers[1].Failed+stats.Tiers[1].Refused)
	require.Equal(t, 200, status(h, get("ann", "/")))
	require.EqualError(t, missing, "inbound: no valid credentials")

	dry := build(t, []inbound.Tier{inbound.PerKeyBy("key", apiKey, keyed.New(known), inbound.DryRun())})
	require.Equal(t, 200, status(dry.Handler(ok), get("", "/")))
	require.Zero(t, dry.Stats().Unauthorized)
}

// A key that was revoked gets the 401 within the time to live, though it was in use.
func TestARevokedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var unknown error
		plan := reserve.Must(pace.Bursty(100))
		keys := keyed.New(func(string) (*reserve.Policy, error) { return plan, unknown }, keyed.WithTTL(time.Minute))
		h := build(t, []inbound.Tier{inbound.PerKeyBy("key", user, keys, inbound.FailOpen())}).Handler(ok)
		time.Sleep(time.Second)
		require.Equal(t, 200, status(h, get("ann", "/")))
		plan, unknown = nil, &inbound.UnauthorizedError{}
		require.Equal(t, 200, status(h, get("ann", "/")))
		time.Sleep(time.Minute)
		require.Equal(t, 401, status(h, get("ann", "/")))
	})
}

// Options of tiers that make no sense are reported.
func TestBadCosts(t *testing.T) {
	for _, opt := range []inbound.TierOption{inbound.Cost(nil), inbound.ChargeAfter(nil)} {
		_, err := inbound.New([]inbound.Tier{inbound.Global("g", bucket(1, 1), opt)})
		var bad *reserve.ValueError
		require.True(t, errors.As(err, &bad))
	}
}
