//go:build !race

package inbound_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/keyed"
)

// bare is a response that costs nothing by itself.
type bare struct{ header http.Header }

func (b bare) Header() http.Header         { return b.header }
func (b bare) Write(p []byte) (int, error) { return len(p), nil }
func (b bare) WriteHeader(int)             {}

// Without headers the decision allocates nothing; with them, their values.
func TestAllocations(t *testing.T) {
	tiers := []inbound.Tier{
		inbound.PerKey("client-endpoint", inbound.Both(reserve.Must(inbound.RemoteAddr()), inbound.Endpoint), bucket(1, 1e9)),
		inbound.PerKey("endpoint", inbound.Endpoint, bucket(1, 1e9)),
		inbound.Global("global", bucket(1, 1e9)),
	}
	r := request("203.0.113.7:4711")
	r.Pattern = "GET /"
	w := bare{http.Header{}}
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		want float64
		opts []inbound.Option
	}{
		{0, []inbound.Option{inbound.WithoutQuotas()}},
		{0, []inbound.Option{inbound.WithoutQuotas(), inbound.WithQueue(s, 10)}},
		{1, nil},
	} {
		h := build(t, tiers, c.opts...).Handler(nothing)
		require.Equal(t, c.want, testing.AllocsPerRun(1000, func() { clear(w.header); h.ServeHTTP(w, r) }))
	}
}

// A client is remembered as a few numbers if no tier comes after its own, and otherwise, until it is idle, as a whole
// limiter: a later tier may refuse, and then its permits come back.
func TestMemoryOfAClient(t *testing.T) {
	client, policy, all := reserve.Must(inbound.RemoteAddr()), bucket(1e-6, 60), bucket(1e-6, 1e9)
	own := keyed.New(func(netip.Addr) (*reserve.Policy, error) { return policy, nil })
	perKey, perKeyBy := inbound.PerKey("client", client, policy), inbound.PerKeyBy("client", client, own)
	for name, c := range map[string]struct {
		tiers []inbound.Tier
		most  float64
	}{
		"the last tier":          {[]inbound.Tier{inbound.Global("global", all), perKey}, 150},
		"the last tier, by keys": {[]inbound.Tier{inbound.Global("global", all), perKeyBy}, 150},
		"the first of two":       {[]inbound.Tier{inbound.PerKey("client", client, policy), inbound.Global("global", all)}, 580},
	} {
		t.Run(name, func(t *testing.T) { require.Less(t, memoryOfAClient(t, c.tiers), c.most) })
	}
}

func memoryOfAClient(t *testing.T, tiers []inbound.Tier) float64 {
	const clients = 100_000
	h := build(t, tiers).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r, w := request(""), bare{http.Header{}}
	live := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := live()
	for i := range clients {
		r.RemoteAddr = fmt.Sprintf("11.%d.%d.%d:1", i>>16, i>>8&255, i&255)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
	each := (live() - before) / clients
	runtime.KeepAlive(h)
	t.Logf("%.0f bytes", each)
	return each
}

// A refusal takes four allocations: what it says, its limiter's error, and the values of RateLimit and Retry-After.
func TestAllocationsOfARefusal(t *testing.T) {
	r := request("203.0.113.7:4711")
	w := bare{http.Header{}}
	h := build(t, []inbound.Tier{inbound.PerKey("client", reserve.Must(inbound.RemoteAddr()), bucket(1e-6, 1))}).Handler(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	h.ServeHTTP(w, r)
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() { clear(w.header); h.ServeHTTP(w, r) }), 4.)
}
