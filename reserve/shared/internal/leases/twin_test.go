package leases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// A pool with one lot that lasts is a limiter that saves up all that it gets: whatever is asked, given back and charged
// to that, and to the twin that is such a limiter, their times agree to a tick or two.
func TestAPoolIsALimiter(t *testing.T) {
	const (
		rate, lot, stored = 1000, 1 << 20, 5
		ms                = int64(time.Millisecond)
		near              = 3 * time.Microsecond // a tick is 1 us
	)
	for seed := range uint64(200) {
		upfront := seed%2 == 0
		synctest.Test(t, func(t *testing.T) {
			opts := []reserve.Option{pace.WithCapacity(lot), reserve.WithStored(stored)}
			if upfront {
				opts = append(opts, reserve.PayUpfront())
			}
			twin := reserve.Must(pace.NewBursty(rate, opts...))
			b, err := New(&shop{begin: time.Now(), upfront: upfront}, time.Second, reserve.Forever)
			require.NoError(t, err)
			b.with(func(now int64, p *pool) {
				p.add(now, Lot{Permits: lot, AtOnce: stored, Begin: now, End: now + (lot-stored)*ms, Interval: 1e6})
			})
			time.Sleep(10 * time.Microsecond) // no decision is within a tick of another
			random := rand.New(rand.NewPCG(seed, 3))
			var ours, theirs []*reserve.Reservation
			trace := ""
			for range 100 {
				n, maxWait := 1+random.IntN(6), reserve.Forever
				switch op := random.IntN(10); {
				case op < 4:
					if random.IntN(3) == 0 {
						maxWait = time.Duration(random.IntN(40)) * time.Millisecond / 4
					}
					trace += fmt.Sprintln("reserve", n, "within", maxWait)
					r, err := b.local.ReserveWithin(context.Background(), n, maxWait)
					s, want := twin.ReserveWithin(context.Background(), n, maxWait)
					require.Equal(t, want == nil, err == nil, "%d: %s%v %v", seed, trace, want, err)
					if err == nil {
						ours, theirs = append(ours, &r), append(theirs, &s)
					}
				case op < 5:
					trace += fmt.Sprintln("try", n)
					require.Equal(t, twin.TryAcquire(n), b.local.TryAcquire(n), "%d: %s", seed, trace)
				case op < 8 && len(ours) > 0:
					i, used := random.IntN(len(ours)), random.IntN(8)
					trace += fmt.Sprintln("settle", i, "at", used)
					used = min(used, ours[i].Permits()) // more is charged in the store
					ours[i].Settle(used)
					theirs[i].Settle(used)
				default:
					d := time.Duration(random.IntN(60)) * time.Millisecond / 4
					trace += fmt.Sprintln("sleep", d)
					time.Sleep(d)
				}
				for i := range ours {
					require.WithinDuration(t, theirs[i].At(), ours[i].At(), near, "%d: %s#%d", seed, trace, i)
				}
				require.InDelta(t, twin.Stored(), b.local.Stored(), 0.01, "%d: %s", seed, trace)
			}
		})
	}
}
