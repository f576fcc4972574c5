package inbound_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// 20 for all, 2 for each user: a user that sends 100 gets 2, and nine others get their 18.
func TestAnAbuserLocksNobodyOut(t *testing.T) {
	for name, order := range map[string]func(user, global inbound.Tier) []inbound.Tier{
		"user first":   func(user, global inbound.Tier) []inbound.Tier { return []inbound.Tier{user, global} },
		"global first": func(user, global inbound.Tier) []inbound.Tier { return []inbound.Tier{global, user} },
	} {
		bubble(t, func(t *testing.T) {
			tiers := order(inbound.PerKey("user", user, bucket(2./60, 2)), inbound.Global("global", bucket(20./60, 20)))
			h := build(t, tiers).Handler(ok)
			passed := map[string]int{}
			for range 100 {
				if status(h, get("abuser", "/")) == http.StatusOK {
					passed["abuser"]++
				}
			}
			for i := range 9 {
				for range 2 {
					require.Equal(t, http.StatusOK, status(h, get(fmt.Sprint("user", i), "/")), name)
				}
			}
			require.Equal(t, 2, passed["abuser"], name)

			// Now nothing is left for all, and a user that is refused for that keeps its own 2.
			for range 10 {
				res := do(h, get("late", "/"))
				require.Equal(t, []string{"global"}, problemOf(t, res).Violated, name)
			}
			time.Sleep(6*s + time.Microsecond) // in which everybody gets 2
			require.Equal(t, http.StatusOK, status(h, get("late", "/")), name)
			require.Equal(t, http.StatusOK, status(h, get("late", "/")), name)
		})
	}
}

// Each of three tiers refuses once, of each kind, and the other two are as if they had not been asked.
func TestARefusalChargesNobody(t *testing.T) {
	kinds := map[string]func(permits int) *reserve.Policy{
		"bursty":  func(n int) *reserve.Policy { return bucket(float64(n)/60, float64(n)) },
		"window":  func(n int) *reserve.Policy { return reserve.Must(window.Policy(n, time.Minute)) },
		"warm-up": func(n int) *reserve.Policy { return reserve.Must(warmup.Policy(float64(n)/60, time.Hour)) },
	}
	for kind, policy := range kinds {
		for refusing := range 3 {
			bubble(t, func(t *testing.T) {
				var tiers []inbound.Tier
				var limiters []*reserve.Limiter
				for i := range 3 {
					n := 50
					if i == refusing {
						n = 1
					}
					limiters = append(limiters, policy(n).Limiter())
					tiers = append(tiers, inbound.GlobalBy(fmt.Sprint("tier", i), limiters[i]))
				}
				h := build(t, tiers).Handler(ok)
				for status(h, get("", "/")) == http.StatusOK { // until it refuses
				}
				if kind == "warm-up" { // those promise nothing at once but every now and then
					for _, l := range limiters {
						time.Sleep(time.Until(l.NextFree()) + 10*s)
					}
					_, err := limiters[refusing].Reserve(t.Context(), 1000)
					require.NoError(t, err)
				}
				before := make([]float64, 3)
				next := make([]time.Time, 3)
				for i, l := range limiters {
					before[i], next[i] = l.Stored(), l.NextFree()
				}
				for range 100 {
					require.Equal(t, http.StatusTooManyRequests, status(h, get("", "/")))
				}
				for i, l := range limiters {
					require.Equal(t, before[i], l.Stored(), "%s %d, refused by %d", kind, i, refusing)
					require.Equal(t, next[i], l.NextFree(), "%s %d, refused by %d", kind, i, refusing)
				}
			})
		}
	}
}

// The scene: per user and endpoint, per endpoint, and global.
func TestThreeTiers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{
			inbound.PerKey("user-endpoint", inbound.Both(user, inbound.Endpoint), bucket(2./60, 2)),
			inbound.PerKey("endpoint", inbound.Endpoint, bucket(5./60, 5)),
			inbound.Global("global", bucket(8./60, 8)),
		})
		mux := http.NewServeMux()
		mux.Handle("GET /items/{id}", m.Handler(ok))
		mux.Handle("GET /orders", m.Handler(ok))
		refusedBy := func(user, path string) string {
			res := do(mux, get(user, path))
			if res.StatusCode == http.StatusOK {
				return ""
			}
			return fmt.Sprint(problemOf(t, res).Violated)
		}
		require.Equal(t, "", refusedBy("ann", "/items/1"))
		require.Equal(t, "", refusedBy("ann", "/items/2"))
		require.Equal(t, "[user-endpoint]", refusedBy("ann", "/items/3"))
		require.Equal(t, "", refusedBy("ann", "/orders"))
		require.Equal(t, "", refusedBy("bob", "/items/1"))
		require.Equal(t, "", refusedBy("bob", "/items/1"))
		require.Equal(t, "", refusedBy("cid", "/items/1"))
		require.Equal(t, "[endpoint]", refusedBy("cid", "/items/1"))
		require.Equal(t, "[user-endpoint endpoint]", refusedBy("bob", "/items/1"))
		require.Equal(t, "", refusedBy("bob", "/orders"))
		require.Equal(t, "", refusedBy("cid", "/orders"))
		require.Equal(t, "[global]", refusedBy("dan", "/orders"))
		require.Equal(t, "[user-endpoint endpoint global]", refusedBy("ann", "/items/1"))
		require.Equal(t, []inbound.TierStats{
			{Name: "user-endpoint", Refused: 3}, {Name: "endpoint", Refused: 1}, {Name: "global", Refused: 1},
		}, m.Stats().Tiers, "counted where they ended")
	})
}

// Many at the same time: never more than the limits, and permits of refused requests are not lost.
func TestConcurrentRequests(t *testing.T) {
	watchdog.Start(t)
	m := build(t, []inbound.Tier{
		inbound.PerKey("user", user, bucket(1e-6, 5)),
		inbound.Global("global", bucket(1e-6, 40)),
	})
	h := m.Handler(ok)
	var mu sync.Mutex
	passed := map[string]int{}
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			name := fmt.Sprint(g % 8)
			for range 50 {
				if status(h, get(name, "/")) == http.StatusOK {
					mu.Lock()
					passed[name]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for name, n := range passed {
		require.Equal(t, 5, n, name)
	}
	require.Len(t, passed, 8)
}

func TestDryRunRefusesNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{
			inbound.Global("new", bucket(1./60, 1), inbound.DryRun()),
			inbound.Global("global", bucket(5./60, 5)),
		}, inbound.WithQueue(s, 10))
		h := m.Handler(ok)
		for range 5 {
			res := do(h, get("", "/"))
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.NotContains(t, fmt.Sprint(res.Header), "new")
		}
		res := do(h, get("", "/"))
		require.Equal(t, []string{"global"}, problemOf(t, res).Violated)
		require.Equal(t, []inbound.TierStats{{Name: "new", WouldRefuse: 5}, {Name: "global", Refused: 1}}, m.Stats().Tiers)
	})
}

func TestCostAndSkip(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := bucket(1, 10).Limiter()
		m := build(t, []inbound.Tier{inbound.GlobalBy("global", l)},
			inbound.WithSkip(func(r *http.Request) bool { return r.URL.Path == "/health" }),
			inbound.WithCost(func(r *http.Request) int {
				var cost int
				_, _ = fmt.Sscan(r.URL.Query().Get("cost"), &cost)
				return cost
			}))
		h := m.Handler(ok)
		for _, c := range []struct {
			path   string
			status int
			left   float64
		}{
			{"/?cost=4", 200, 6}, {"/health?cost=5", 200, 6}, {"/?cost=0", 200, 6}, {"/?cost=-3", 200, 6},
			{"/?cost=7", 429, 6}, {"/?cost=6", 200, 0}, {"/?cost=1", 429, 0}, {"/?cost=0", 200, 0}, {"/health", 200, 0},
		} {
			res := do(h, get("", c.path))
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.Equal(t, c.status, res.StatusCode, c.path)
			require.Equal(t, c.status == 200, string(body) == "hello", "whether the handler runs: %s", c.path)
			require.Equal(t, c.left, l.Stored(), c.path)
		}
	})
}

// An anonymous request is none of the user tier's business.
func TestSkippedTier(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := build(t, []inbound.Tier{
			inbound.PerKey("user", user, bucket(1, 1)), inbound.Global("global", bucket(1, 3)),
		}, inbound.WithQueue(500*time.Millisecond, 1)).Handler(ok)
		require.Equal(t, 200, status(h, get("", "/")))
		require.Equal(t, 200, status(h, get("", "/")))
		require.Equal(t, 200, status(h, get("ann", "/")))
		require.Equal(t, []string{"user", "global"}, problemOf(t, do(h, get("ann", "/"))).Violated)
	})
}

func TestMoreTiersThanUsual(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var tiers []inbound.Tier
		for i := range 9 {
			tiers = append(tiers, inbound.Global(fmt.Sprint(i), bucket(1, float64(10+i))))
		}
		h := build(t, tiers).Handler(ok)
		for range 10 {
			require.Equal(t, 200, status(h, get("", "/")))
		}
		require.Equal(t, []string{"0"}, problemOf(t, do(h, get("", "/"))).Violated)
	})
}

// A key of two parts has no key if one of them has none: not the same one for all requests that lack a part.
func TestBothParts(t *testing.T) {
	broken := errors.New("broken")
	fails := func(*http.Request) (int, error) { return 0, broken }
	five := func(*http.Request) (int, error) { return 5, nil }
	_, err := inbound.Both(user, five)(get("", "/"))
	require.ErrorIs(t, err, inbound.ErrSkip)
	_, err = inbound.Both(fails, five)(get("ann", "/"))
	require.ErrorIs(t, err, broken)
	_, err = inbound.Both(five, fails)(get("ann", "/"))
	require.ErrorIs(t, err, broken)
	key, err := inbound.Both(user, five)(get("ann", "/"))
	require.NoError(t, err)
	require.Equal(t, inbound.Pair[string, int]{First: "ann", Second: 5}, key)
}

// The limits of one tier that is used in two middlewares are the same.
func TestATierInTwoMiddlewares(t *testing.T) {
	bubble(t, func(t *testing.T) {
		tier := inbound.PerKey("user", user, bucket(1e-6, 2))
		for range 2 {
			require.Equal(t, 200, status(build(t, []inbound.Tier{tier}).Handler(ok), get("ann", "/")))
		}
		require.Equal(t, 429, status(build(t, []inbound.Tier{tier}).Handler(ok), get("ann", "/")))
	})
}
