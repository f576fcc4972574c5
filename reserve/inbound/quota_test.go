package inbound_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

func TestQuotaHeaders(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy func() *reserve.Policy
		take   int
		want   [2]string
		x      [3]string
	}{
		{"50/s with 10 stored: what flows in counts", func() *reserve.Policy { return bucket(50, 10) }, 1, [2]string{`q=50;w=1`, `r=59;t=1`}, [3]string{"50", "9", "1"}},
		{"none stored", func() *reserve.Policy { return bucket(50, 10) }, 10, [2]string{`q=50;w=1`, `r=50;t=1`}, [3]string{"50", "0", "1"}},
		{"1000 an hour", func() *reserve.Policy { return bucket(1000./3600, 1000) }, 400, [2]string{`q=1000;w=3600`, `r=600;t=1`}, [3]string{"1000", "600", "1440"}},
		{"the last of an hour", func() *reserve.Policy { return bucket(1000./3600, 1000) }, 1000, [2]string{`q=1000;w=3600`, `r=1;t=4`}, [3]string{"1000", "0", "3604"}},
		{"one in 3 s", func() *reserve.Policy { return bucket(1./3, 1) }, 1, [2]string{`q=1;w=3`, `r=1;t=3`}, [3]string{"1", "0", "6"}},
		{"Guava's bursty", func() *reserve.Policy { return reserve.Must(pace.Bursty(5)) }, 1, [2]string{`q=5;w=1`, `r=5;t=1`}, [3]string{"5", "0", "2"}},
		{"warm-up", func() *reserve.Policy { return reserve.Must(warmup.Policy(10, 4*s)) }, 1, [2]string{`q=10;w=1`, `r=8;t=1`}, [3]string{"10", "0", "1"}},
		{"window", func() *reserve.Policy { return reserve.Must(window.Policy(100, time.Minute)) }, 30, [2]string{`q=100;w=60`, `r=70;t=1`}, [3]string{"100", "70", "60"}},
		{"window, all used", func() *reserve.Policy { return reserve.Must(window.Policy(100, time.Minute)) }, 100, [2]string{`q=100;w=60`, `r=1;t=60`}, [3]string{"100", "0", "60"}},
	} {
		bubble(t, func(t *testing.T) {
			h := build(t, []inbound.Tier{inbound.Global("a tier", c.policy())}, inbound.WithXRateLimit(),
				inbound.WithCost(func(*http.Request) int { return c.take })).Handler(ok)
			now := time.Now().Unix()
			res := do(h, get("", "/"))
			require.Equal(t, 200, res.StatusCode, c.name)
			reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64)
			require.NoError(t, err)
			require.Equal(t, c.want, [2]string{res.Header.Get("RateLimit-Policy")[len(`"a tier";`):], res.Header.Get("RateLimit")[len(`"a tier";`):]}, c.name)
			require.Equal(t, c.x, [3]string{res.Header.Get("X-RateLimit-Limit"), res.Header.Get("X-RateLimit-Remaining"), fmt.Sprint(reset - now)}, c.name)
		})
	}
}

// A client that spends r within t is not refused.
func TestQuotaIsHonest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := build(t, []inbound.Tier{inbound.Global("global", bucket(50, 10))}).Handler(ok)
		for range 20 {
			res := do(h, get("", "/"))
			require.Equal(t, 200, res.StatusCode)
			var r, seconds int
			_, err := fmt.Sscanf(res.Header.Get("RateLimit"), `"global";r=%d;t=%d`, &r, &seconds)
			require.NoError(t, err)
			gap := time.Duration(seconds)*s/time.Duration(r) + 1
			for range r - 1 {
				time.Sleep(gap)
				require.Equal(t, 200, status(h, get("", "/")))
			}
			time.Sleep(gap)
		}
	})
}

func TestWhichHeaders(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	limited := inbound.Global("closest", bucket(2, 2, clock))
	roomy := inbound.Global("roomy", bucket(100, 100, clock))
	unknown := inbound.PerKeyBy("unknown", user, byFunc[string](func(string) (reserve.Reserver, error) {
		return reserve.All(), nil
	}))
	told := inbound.PerKeyBy("told", user, byFunc[string](func(string) (reserve.Reserver, error) {
		return reserve.All(), nil
	}), inbound.Quota(7, time.Minute))
	most := int(min(int64(math.MaxInt), 999_999_999_999_999)) // of an integer in a header, or of an int
	for _, c := range []struct {
		tiers         []inbound.Tier
		opts          []inbound.Option
		policy, limit string
	}{
		{[]inbound.Tier{roomy, limited}, nil, `"roomy";q=100;w=1, "closest";q=2;w=1`, `"closest";r=3;t=1`},
		{[]inbound.Tier{limited, roomy}, []inbound.Option{inbound.WithoutQuotas()}, ``, ``},
		{[]inbound.Tier{inbound.Global("a", bucket(3, 3, clock), inbound.Quota(most, s)), inbound.Global("b", bucket(3, 3, clock))},
			nil, fmt.Sprintf(`"a";q=%d;w=1, "b";q=3;w=1`, most), `"a";r=5;t=1`},
		{[]inbound.Tier{unknown, told}, nil, `"told";q=7;w=60`, ``},
		{[]inbound.Tier{unknown}, nil, ``, ``},
	} {
		res := do(build(t, c.tiers, c.opts...).Handler(ok), get("ann", "/"))
		require.Equal(t, 200, res.StatusCode)
		require.Equal(t, c.policy, res.Header.Get("RateLimit-Policy"))
		if c.policy == "" {
			require.NotContains(t, res.Header, "Ratelimit-Policy", "nor an empty one")
		}
		require.Equal(t, c.limit, res.Header.Get("RateLimit"))
		require.Empty(t, res.Header.Get("X-RateLimit-Limit"))
	}
}

// Changes that a handler makes to the values of one response reach no other.
func TestHeadersAreNotShared(t *testing.T) {
	h := build(t, []inbound.Tier{inbound.Global("global", bucket(1, 9))}).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("RateLimit", "more")
		require.Equal(t, `"global";q=9;w=9`, w.Header().Get("RateLimit-Policy"))
		w.Header()["Ratelimit-Policy"][0] = "mine"
	}))
	res := do(h, get("", "/"))
	require.Equal(t, []string{"mine"}, res.Header["Ratelimit-Policy"])
	require.Len(t, res.Header["Ratelimit"], 2)
	w := httptest.NewRecorder()
	build(t, []inbound.Tier{inbound.Global("global", bucket(1, 9))}).Handler(ok).ServeHTTP(w, get("", "/"))
	require.Equal(t, []string{`"global";q=9;w=9`}, w.Header()["Ratelimit-Policy"])
}
