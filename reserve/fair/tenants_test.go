package fair_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
)

// A class serves requests with a tenant and without one, in any order, and again after none has waited. Before, the
// second request without a tenant panicked, because the class had forgotten its tenants but that.
func TestRequestsWithAndWithoutATenant(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			q := reserve.Must(fair.New(reserve.Must(pace.NewBursty(10)), []fair.Class{{Name: "a"}, {Name: "b"}}, fair.WithTenants(nil)))
			for range 4 {
				var all sync.WaitGroup
				for range 1 + random.IntN(6) {
					class, tenant, n := []string{"a", "b"}[random.IntN(2)], []string{"", "x", "y"}[random.IntN(3)], 1+random.IntN(20)
					ctx, cancel := context.WithCancel(context.Background())
					if random.IntN(4) == 0 {
						time.AfterFunc(time.Duration(random.IntN(3000))*time.Millisecond, cancel)
					}
					settles := random.IntN(3)
					all.Go(func() {
						defer cancel()
						r, err := q.Tenant(class, tenant).ReserveWithin(ctx, n, reserve.Forever)
						if err == nil && r.Wait(ctx) == nil && settles > 0 {
							r.Settle(settles)
						}
					})
					time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				}
				all.Wait()
				for _, c := range q.Snapshot().Classes {
					require.Zero(t, c.Waiting)
				}
			}
		})
	}
}
