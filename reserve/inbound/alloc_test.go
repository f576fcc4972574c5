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

// A client whose requests pass without waiting is remembered as a few numbers, whether or not a later tier refuses.
func TestMemoryOfAClient(t *testing.T) {
	client, policy := reserve.Must(inbound.RemoteAddr()), bucket(1e-6, 60)
	own := keyed.New(func(netip.Addr) (*reserve.Policy, error) { return policy, nil })
	for name, perClient := range map[string]inbound.Tier{
		"PerKey":   inbound.PerKey("client", client, policy),
		"PerKeyBy": inbound.PerKeyBy("client", client, own),
	} {
		t.Run(name, func(t *testing.T) { memoryOfAClient(t, perClient) })
	}
}

func memoryOfAClient(t *testing.T, perClient inbound.Tier) {
	const clients = 100_000
	h := build(t, []inbound.Tier{
		perClient,
		inbound.Global("global", bucket(1e-6, clients/2)),
	}).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
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
	each := (live() - before) / (clients / 2)
	runtime.KeepAlive(h)
	t.Logf("%.0f bytes", each)
	require.Less(t, each, 200.)
}
