package inbound_test

import (
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// from sends a request from an address and returns the status.
func from(h http.Handler, format string, args ...any) int {
	r := get("", "/")
	r.RemoteAddr = fmt.Sprintf(format, args...)
	return status(h, r)
}

var remote = reserve.Must(inbound.RemoteAddr())

// A network gets three quarters of the room, and the rest is for others. Its other
// clients share a limiter in each /24 or /48.
func TestANetworkDoesNotTakeAllRoom(t *testing.T) {
	for name, c := range map[string]struct {
		client func(h http.Handler, i int) int
		shared int // limiters
	}{
		"an IPv6 /44": {func(h http.Handler, i int) int {
			return from(h, "[2001:db8:%x:%x::1]:1", i&15, i>>4)
		}, 16},
		"an IPv4 /16": {func(h http.Handler, i int) int {
			return from(h, "198.51.%d.%d:1", i>>8, i&255)
		}, 11_999>>8 + 1 - 7500>>8},
	} {
		bubble(t, func(t *testing.T) {
			both := inbound.Both(remote, func(*http.Request) (string, error) { return "GET /", nil })
			for kind, tier := range map[string]inbound.Tier{
				"address": inbound.PerKey("client", remote, bucket(1e-6, 3), inbound.MaxKeys(10_000)),
				"pair":    inbound.PerKey("client", both, bucket(1e-6, 3), inbound.MaxKeys(10_000)),
			} {
				m := build(t, []inbound.Tier{tier})
				h := m.Handler(ok)
				served := 0
				for i := range 12_000 {
					if c.client(h, i) == http.StatusOK {
						served++
					}
				}
				require.LessOrEqual(t, served, 7500+3*c.shared, "%s, %s", name, kind)
				require.GreaterOrEqual(t, served, 7500+3*(c.shared-2), "two may have the hash of others: %s, %s", name, kind)
				require.EqualValues(t, 4500, m.Stats().Tiers[0].Shared, name)
				served = 0
				for i := range 4 * 512 { // others have their own, but for few whose networks have the hash of another
					if from(h, "203.%d.0.%d:1", i>>2&127, i&3) == http.StatusOK {
						served++
					}
					if from(h, "[2001:%x:1:%x::]:1", i>>2&127, i&3) == http.StatusOK {
						served++
					}
				}
				require.Greater(t, served, 2*512*3*9/10, "%s, %s", name, kind)
				require.LessOrEqual(t, served, 2*512*3, "%s, %s", name, kind)
			}
		})
	}
}

// When there is no room at all, new clients share limiters, those of one /24 or /48 the same. None is refused because
// of the others' number alone, and no client that has used up its limit is forgiven.
func TestNoRoomForAKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{inbound.PerKey("client", remote, bucket(1e-6, 2), inbound.MaxKeys(100))})
		h := m.Handler(ok)
		shared := func() uint64 { return m.Stats().Tiers[0].Shared }
		for i := range 100 {
			require.Equal(t, 200, from(h, "%d.0.0.1:1", i+1))
		}
		require.Zero(t, shared())
		for _, want := range []int{200, 200, 429} { // a /24 shares
			require.Equal(t, want, from(h, "203.0.113.%d:1", shared()))
			require.Equal(t, want, from(h, "[2001:db8:1:%x::]:1", shared()))
		}
		served := 0
		for i := range 1000 {
			if from(h, "[2001:db9:%x::]:1", i) == 200 {
				served++
			}
		}
		require.Greater(t, served, 990, "of 1000 in 16384 groups with room for two requests")
		for i := range 100 {
			require.Equal(t, 200, from(h, "%d.0.0.1:1", i+1))
			require.Equal(t, 429, from(h, "%d.0.0.1:1", i+1))
		}
	})
}

// Keys that are no addresses share limiters by chance.
func TestNoRoomForAUser(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := build(t, []inbound.Tier{inbound.PerKey("user", user, bucket(1e-6, 1), inbound.MaxKeys(100))})
		h := m.Handler(ok)
		got := map[int]int{}
		const users, limiters = 200_000 / min(4, limitertest.Slower), 1 << 14
		for i := range users {
			got[status(h, get(fmt.Sprint("user", i), "/"))]++
		}
		taken := limiters * (1 - math.Exp(-float64(users-100)/limiters))
		require.InDelta(t, 100+taken, got[200], 0.01*taken)
		require.Equal(t, users, got[200]+got[429])
		require.EqualValues(t, users-100, m.Stats().Tiers[0].Shared)
	})
}

func TestMaxKeysIsForPerKey(t *testing.T) {
	for want, tier := range map[string]inbound.Tier{
		`inbound: tier "a": inbound: MaxKeys is 5; want a tier from PerKey`: inbound.Global("a", bucket(1, 1), inbound.MaxKeys(5)),
		`inbound: tier "b": inbound: MaxKeys is 0; want at least 1 key`:     inbound.PerKey("b", user, bucket(1, 1), inbound.MaxKeys(0)),
		`inbound: tier "c": inbound: MaxKeys is 7; want a tier from PerKey`: inbound.PerKeyBy("c", func(*http.Request) (netip.Addr, error) { return netip.Addr{}, nil },
			byFunc[netip.Addr](func(netip.Addr) (reserve.Reserver, error) { return reserve.All(), nil }), inbound.MaxKeys(7)),
	} {
		_, err := inbound.New([]inbound.Tier{tier})
		require.EqualError(t, err, want)
	}
}
