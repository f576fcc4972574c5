//go:build !race

package inbound_test

import (
	"net/http"
	"testing"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
)

// A request that passes and one that is refused, by a tier for each client.
func BenchmarkRequest(b *testing.B) {
	for name, rate := range map[string]float64{"passes": 1e9, "refused": 1e-6} {
		b.Run(name, func(b *testing.B) {
			m, err := inbound.New([]inbound.Tier{inbound.PerKey("client", reserve.Must(inbound.RemoteAddr()), bucket(rate, 100))})
			if err != nil {
				b.Fatal(err)
			}
			h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			r, w := request("203.0.113.7:4711"), bare{http.Header{}}
			for range 101 {
				h.ServeHTTP(w, r)
			}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				h.ServeHTTP(w, r)
			}
		})
	}
}
