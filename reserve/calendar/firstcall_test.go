package calendar

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/smooth"
)

// A limiter that is looked at all the time is as another that is not.
func TestALookChangesNothing(t *testing.T) {
	for _, period := range []Period{Every(time.Second), FromFirst(time.Second)} {
		for seed := range uint64(300) {
			r := rand.New(rand.NewPCG(seed, 6))
			seen, _ := newTest(3, period, 0)
			left, _ := newTest(3, period, 0)
			var slots [2][]smooth.Slot
			for now := int64(0); now < int64(20*time.Second); {
				for range r.IntN(20) {
					now += r.Int64N(int64(200 * time.Millisecond))
					require.GreaterOrEqual(t, seen.Level(now), -1e9)
				}
				n, i := 1+r.IntN(5), 0
				if len(slots[0]) > 0 {
					i = r.IntN(len(slots[0]))
				}
				what := r.IntN(4)
				for k, l := range []*ledger{seen, left} {
					switch {
					case what == 0:
						l.Charge(now, n)
					case what == 1 && len(slots[k]) > i && slots[k][i].Permits > 0:
						l.Return(now, slots[k][i], 0)
						slots[k][i].Permits = 0
					default:
						slot, _, _ := l.Reserve(now, n, never)
						slots[k] = append(slots[k], slot)
					}
				}
				require.Equal(t, left.NextFree(now), seen.NextFree(now), "%v, seed %d", period, seed)
				require.Equal(t, left.Level(now), seen.Level(now), "%v, seed %d", period, seed)
			}
		}
	}
}

// A forecast is what comes, also at a pace: 10,000 a day at no more than four times the even rate take the whole day.
func TestForecastAtAPace(t *testing.T) {
	for _, spread := range []float64{1, 1.5, 4} {
		for _, n := range []int{1, 2, 7, 10, 11, 25, 40} {
			l, _ := newTest(10, Every(time.Second), 0)
			l.rule = &rule{rate: 10, quota: 10, period: Every(time.Second), spread: spread}
			want, now := l.Forecast(0, n), int64(0)
			for range n {
				_, ready, _ := l.Reserve(now, 1, never)
				now = max(now, ready)
			}
			require.Equal(t, now, want, "%v, %d", spread, n)
		}
	}
}

// The call that opened a period gives up: the period is that of the next call, and nobody who waits goes later.
func TestACancelledFirstCall(t *testing.T) {
	const ms = int64(time.Millisecond)
	l, _ := newTest(5, FromFirst(time.Second), 0)
	first, _, _ := l.Reserve(0, 2, never)
	require.True(t, l.Take(0, 3))
	waits, ready, _ := l.Reserve(0, 5, never)
	require.Equal(t, 1000*ms, ready)
	l.Return(800*ms, first, 0)
	ready, _ = l.Ready(800*ms, waits.Number)
	require.Equal(t, 1000*ms, ready)

	l, _ = newTest(5, FromFirst(time.Second), 0)
	first, _, _ = l.Reserve(0, 2, never)
	require.True(t, l.Take(500*ms, 3))
	l.Return(800*ms, first, 0)
	require.True(t, l.Take(800*ms, 2))
	require.Equal(t, 1500*ms, l.NextFree(800*ms), "as if it had never been")
}
