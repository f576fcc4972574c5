package calendar

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The quota is lowered and raised again, while calls are out, callers wait and give up, the limiter is paused, and is saved
// and restored. No hour of the server holds more than the largest quota.
func TestChangesExceedNoPeriod(t *testing.T) {
	const minute, hour, quota = int64(time.Minute), int64(time.Hour), 6
	for round := range uint64(20 * queues(t)) {
		random := rand.New(rand.NewPCG(round, 34))
		l, _ := newTest(quota, Every(time.Hour), 10)
		longest := (1 + 39*int64(round/2%2)) * minute
		arrived := map[int64]int{}
		var waiting, out []sent
		for now := int64(0); now < 30*hour; now += minute {
			out = slices.DeleteFunc(out, func(c sent) bool {
				if c.ends <= now {
					l.End(now, c.slot)
				}
				return c.ends <= now
			})
			switch k := random.IntN(200); {
			case k < 6:
				if slot, _, ok := l.Reserve(now, 1+random.IntN(3), never); ok {
					waiting = append(waiting, sent{slot: slot})
				}
			case k < 16 && len(waiting) > 0:
				i := random.IntN(len(waiting))
				l.Return(now, waiting[i].slot, 0)
				waiting = slices.Delete(waiting, i, i+1)
			case k < 19:
				l.SetRate(now, float64(1+random.IntN(quota))/3600)
			case k == 19:
				l.Pause(now, now+minute*random.Int64N(180))
			case k < 21+int(round%2*20) && len(out) == 0:
				restored, err := l.rule.load(l.AppendState(nil, now), now, l.wall)
				require.NoError(t, err)
				l, waiting = restored, nil
			}
			waiting = slices.DeleteFunc(waiting, func(c sent) bool {
				if l.Waits(now, c.slot.Number) {
					return false
				}
				c.slot = l.Begin(now, c.slot)
				c.arrives = now + random.Int64N(longest)
				c.ends = c.arrives + random.Int64N(longest)
				out = append(out, c)
				arrived[c.arrives/hour] += c.slot.Permits
				return true
			})
		}
		for at, n := range arrived {
			require.LessOrEqual(t, n, quota, "round %d, hour %d", round, at)
		}
	}
}
