package fair_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
)

// A decision with 10,000 tenants and 64 goroutines: all wait for their turn at a limit that is never the reason.
func BenchmarkTenants(b *testing.B) {
	for _, tenants := range []int{1, 10_000} {
		b.Run(fmt.Sprint(tenants), func(b *testing.B) {
			limit := reserve.Must(pace.NewBursty(20e6, pace.WithBurst(0)))
			q := reserve.Must(fair.New(limit, []fair.Class{{Name: "a", Priority: 1}, {Name: "b"}}, fair.WithTenants(nil)))
			names := make([]string, tenants)
			for i := range names {
				names[i] = strconv.Itoa(i)
			}
			var next atomic.Int64
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := next.Add(1)
					r, err := q.Tenant([]string{"a", "b"}[i&1], names[i*7919%int64(tenants)]).ReserveWithin(ctx, 1, reserve.Forever)
					if err != nil {
						b.Fatal(err)
					}
					if err := r.Wait(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// A decision while 10,000 tenants wait: one more comes, and gives up.
func BenchmarkAmongWaiting(b *testing.B) {
	limit := reserve.Must(pace.NewBursty(1e-3))
	q := reserve.Must(fair.New(limit, []fair.Class{{Name: "a", Priority: 1}, {Name: "b"}}, fair.WithTenants(nil)))
	for i := range 10_000 {
		if _, err := q.Tenant("b", strconv.Itoa(i)).ReserveWithin(ctx, 1, reserve.Forever); err != nil {
			b.Fatal(err)
		}
	}
	var next atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := q.Tenant("b", strconv.Itoa(int(next.Add(1))%10_000)).ReserveWithin(ctx, 1, reserve.Forever)
			if err != nil {
				b.Fatal(err)
			}
			r.Cancel()
		}
	})
}

func BenchmarkAtOnce(b *testing.B) {
	q := reserve.Must(fair.New(reserve.Must(pace.NewBursty(1e12)), []fair.Class{{}}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := q.ReserveWithin(ctx, 1, 0); err != nil {
			b.Fatal(err)
		}
	}
}
