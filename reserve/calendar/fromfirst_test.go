package calendar

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/smooth"
)

// A server opens a period of a second with the first call that arrives, and says nothing of it. Calls take up to 150 ms
// there and 150 ms back, and overtake each other. The client wants more than the quota of 10, at first without a pause.
func TestNoPeriodOfTheServerIsExceeded(t *testing.T) {
	const quota, second = 10, int64(time.Second)
	random := rand.New(rand.NewPCG(3, 8))
	periods, full := 0, 0
	for round := range 40 {
		l, _ := newTest(quota, FromFirst(time.Second), 10)
		var arrivals []int64
		type call struct {
			slot smooth.Slot
			end  int64
		}
		var calls []call
		for now := int64(0); now < 60*second; now += int64(time.Millisecond) {
			calls = slices.DeleteFunc(calls, func(c call) bool {
				if c.end <= now {
					l.End(now, c.slot)
				}
				return c.end <= now
			})
			if random.IntN(1+30*(round%4)) > 0 {
				continue
			}
			if slot, _, ok := l.Reserve(now, 1, now); ok {
				arrives := now + random.Int64N(int64(150*time.Millisecond))
				arrivals = append(arrivals, arrives)
				calls = append(calls, call{l.Begin(now, slot), arrives + random.Int64N(int64(150*time.Millisecond))})
			}
		}
		slices.Sort(arrivals)
		for len(arrivals) > 0 {
			n, _ := slices.BinarySearch(arrivals, arrivals[0]+second)
			require.LessOrEqual(t, n, quota, "in round %d", round)
			arrivals = arrivals[n:]
			periods++
			if n == quota {
				full++
			}
		}
	}
	t.Logf("%d of %d periods are full", full, periods)
	require.Greater(t, full, periods/2)
}
