package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// 20 for everybody, 2 for each user: one who sends 100 gets 2, and nine others get their 18.
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

			// Now nothing is left for everybody, and who is refused for that keeps his own.
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

// Whichever of three tiers refuses, and of whatever kind they are, the other two are as if nobody had asked.
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

// Many at the same time: never more than the limits, and what is refused is not lost.
func TestConcurrentRequests(t *testing.T) {
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
		{"no limiter", inbound.PerKeyBy("shared", func(*http.Request) (int, error) { return 0, nil },
			inbound.LimitersFunc[int](func(int) (reserve.Reserver, error) { return (*reserve.Limiter)(nil), nil })), http.StatusServiceUnavailable, nil},
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
		if c.err != nil {
			require.ErrorIs(t, failed[0], c.err, c.name)
		} else {
			require.EqualError(t, errors.Unwrap(failed[0]), "inbound: the limiter of a key is <nil>; want a limiter or an error")
		}
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

// The answer to a request that a tier failed for, where text is wanted, and what a refusal handler is told.
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
	require.Empty(t, got.Tiers)
	require.Equal(t, "shared", got.Err.Tier)
	require.Equal(t, 503, got.Status)
}

// A panic goes on to whoever recovers from it, and takes no permits along.
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
			require.Equal(t, c.status, status(h, get("", c.path)), c.path)
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

func TestBadInput(t *testing.T) {
	policy := reserve.Must(pace.Bursty(1))
	global := inbound.Global("global", policy)
	for want, c := range map[string]struct {
		tiers []inbound.Tier
		opt   inbound.Option
	}{
		"inbound: tiers is 0; want at least 1":                             {nil, nil},
		"inbound: a tier is the zero Tier; want one from Global or PerKey": {[]inbound.Tier{{}}, nil},
		`inbound: a tier's name is "global"; want `:                        {[]inbound.Tier{global, global}, nil},
		`inbound: a tier's name is ""; want `:                              {[]inbound.Tier{inbound.Global("", policy)}, nil},
		`inbound: a tier's name is "a\"b"; want `:                          {[]inbound.Tier{inbound.Global(`a"b`, policy)}, nil},
		`inbound: a tier's name is "a\r\nb"; want `:                        {[]inbound.Tier{inbound.Global("a\r\nb", policy)}, nil},
		"inbound: the policy of tier x is <nil>; want a policy":            {[]inbound.Tier{inbound.Global("x", nil)}, nil},
		"inbound: the policy of tier y is <nil>; want a policy":            {[]inbound.Tier{inbound.PerKey("y", user, nil)}, nil},
		"inbound: the limiter of tier x is <nil>; want a limiter":          {[]inbound.Tier{inbound.GlobalBy("x", nil)}, nil},
		"inbound: the limiters of tier x is <nil>; want limiters":          {[]inbound.Tier{inbound.PerKeyBy("x", user, nil)}, nil},
		"inbound: the key of tier x is <nil>; want a function":             {[]inbound.Tier{inbound.PerKey[int]("x", nil, policy)}, nil},
		"inbound: the limiter of tier p is <nil>; want a limiter":          {[]inbound.Tier{inbound.GlobalBy("p", (*reserve.Limiter)(nil))}, nil},
		"inbound: the limiters of tier p is <nil>; want limiters":          {[]inbound.Tier{inbound.PerKeyBy("p", user, (*keyed.Limiters[string])(nil))}, nil},
		"inbound: the limiters of tier f is <nil>; want limiters":          {[]inbound.Tier{inbound.PerKeyBy("f", user, inbound.LimitersFunc[string](nil))}, nil},
		"inbound: the key of tier y is <nil>; want a function":             {[]inbound.Tier{inbound.PerKeyBy("y", nil, keyed.New(func(int) (*reserve.Policy, error) { return policy, nil }))}, nil},
		"inbound: the key of tier b is <nil>; want a function":             {[]inbound.Tier{inbound.PerKey("b", inbound.Both[int](nil, user), policy)}, nil},
		"inbound: the key of tier d is <nil>; want a function":             {[]inbound.Tier{inbound.PerKey("d", inbound.Both[string, int](user, nil), policy)}, nil},
		`inbound: tier "o": inbound: option 1 is <nil>; want an option`:    {[]inbound.Tier{inbound.Global("o", policy, nil)}, nil},
		`inbound: tier "q": inbound: option 2 is <nil>; want an option`:    {[]inbound.Tier{inbound.PerKey("q", user, policy, inbound.DryRun(), nil)}, nil},
		"inbound: WithCost is <nil>; want a function":                      {[]inbound.Tier{global}, inbound.WithCost(nil)},
		"inbound: WithSkip is <nil>; want a function":                      {[]inbound.Tier{global}, inbound.WithSkip(nil)},
		"inbound: WithRefusal is <nil>; want a function":                   {[]inbound.Tier{global}, inbound.WithRefusal(nil)},
		"inbound: WithOnFailure is <nil>; want a function":                 {[]inbound.Tier{global}, inbound.WithOnFailure(nil)},
		"inbound: Quota is 0; want 1 to 999999999999999 requests":          {[]inbound.Tier{inbound.Global("x", policy, inbound.Quota(0, s))}, nil},
		"inbound: Quota is -1; want 1 to 999999999999999 requests":         {[]inbound.Tier{inbound.Global("x", policy, inbound.Quota(-1, s))}, nil},
		"inbound: Quota is 1.5s; want a window of whole seconds":           {[]inbound.Tier{inbound.Global("x", policy, inbound.Quota(1, 1500*time.Millisecond))}, nil},
		"inbound: WithQueue is 0s; want a positive wait":                   {[]inbound.Tier{global}, inbound.WithQueue(0, 1)},
		"inbound: WithQueue is 0; want at least 1 request":                 {[]inbound.Tier{global}, inbound.WithQueue(s, 0)},
		"inbound: WithTarpit is -1s; want a positive delay":                {[]inbound.Tier{global}, inbound.WithTarpit(-s, 1)},
		"inbound: WithTarpit is -1; want at least 1 request":               {[]inbound.Tier{global}, inbound.WithTarpit(s, -1)},
		"inbound: WithJitter is -1s; want 0 or more":                       {[]inbound.Tier{global}, inbound.WithJitter(-s)},
	} {
		var opts []inbound.Option
		if c.opt != nil {
			opts = append(opts, c.opt)
		}
		m, err := inbound.New(c.tiers, opts...)
		require.ErrorContains(t, err, want)
		var value *reserve.ValueError
		require.ErrorAs(t, err, &value)
		require.Nil(t, m)
	}
	_, err := inbound.New([]inbound.Tier{global}, inbound.WithJitter(0), nil)
	require.EqualError(t, err, "inbound: option 2 is <nil>; want an option")
	require.PanicsWithError(t, "inbound: Handler is <nil>; want a handler", func() { build(t, []inbound.Tier{global}).Handler(nil) })
	if bits.UintSize == 64 { // more than a structured field can hold
		_, err := inbound.New([]inbound.Tier{inbound.Global("x", policy, inbound.Quota(math.MaxInt, s))})
		require.ErrorContains(t, err, "inbound: Quota is 9223372036854775807; want 1 to 999999999999999 requests")
	}
}
