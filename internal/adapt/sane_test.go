package adapt

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call of before an event is answered slowly, and then an acceptance ends a row of refusals: no time has passed, and
// the rate is to be back already. Before, it became NaN, and stayed so.
func TestNoTimePasses(t *testing.T) {
	r, now := New(20), 0.
	answer := func(after, took float64, ok bool) {
		now += after
		r.Sent(at(now-took), 1)
		if ok {
			r.Accepted(at(now), at(now-took), 1)
		} else {
			r.Refused(at(now), at(now-took), at(now), false)
		}
	}
	for range 600 {
		answer(0.05, 0.05, true)
	}
	for range 30 {
		answer(0.06, 0.05, false)
		answer(0.06, 0.05, true)
	}
	answer(0.1, 0.05, false)
	answer(1.5, 1.6, true)
	answer(0.1, 0.05, false)
	answer(0.1, 0.05, true)
	for range 3600 {
		answer(min(1, 1/r.Now()), 0.05, true)
	}
	require.Greater(t, r.Now(), 15.)
}

// Whatever is answered, and when, also at one time or in the past: the rate is a number from the floor to the ceiling.
func FuzzRate(f *testing.F) {
	f.Add(uint8(0), []byte("\x00\x10\x21\x05\x42\x21\x00\x00\x13\x77\x21\x05\xff\xfe\x01"))
	f.Add(uint8(1), []byte("\x01\x01\x01\x01\x11\x21\x31\x41\x01\x11\x01\x21\x81\x01\x91\x00"))
	f.Add(uint8(2), []byte("\xf1\x01\xe2\x21\xf3\x01\xf1\x11\x41\x01\x81\x11\xf1\x01\xf1\x11"))
	steps := []time.Duration{
		0, time.Millisecond, 50 * time.Millisecond, time.Second, time.Minute, time.Hour, -time.Second, -time.Hour,
	}
	f.Fuzz(func(t *testing.T, kind uint8, answers []byte) {
		rate := []float64{20, 1e-9, 1e12, unknown}[kind%4]
		r := New(rate)
		if kind >= 128 && rate < unknown {
			r = Known(rate)
		}
		now := at(0)
		for i, b := range answers {
			step := steps[b&7]
			sent := now.Add(-steps[i&7])
			switch now = now.Add(step); b >> 3 & 7 {
			case 0:
				r.Sent(now, float64(b>>6))
			case 1:
				r.Said(now, sent, float64(b), step, b > 127)
			case 2:
				r.Left(sent, float64(b>>6))
			case 3:
				r.Short(now, sent, 1)
			case 4:
				r.Blocked(now, step)
			case 5, 6:
				r.Refused(now, sent, now.Add(steps[b>>6]), b&8 == 0)
			default:
				r.Accepted(now, sent, float64(b>>6))
			}
			require.False(t, math.IsNaN(r.Now()) || r.Now() <= 0 || r.Now() > rate, "%v", r.Now())
			requireSane(t, r)
			require.False(t, math.IsNaN(r.rate) || r.rate < min(leastRate, rate), "%v", r.rate)
		}
	})
}

func requireSane(t *testing.T, r Rate) {
	for _, i := range r.imposed {
		require.True(t, i.share >= 0 && i.share <= 1 && i.budget >= 0 && i.budget <= mostBudget, "%v", i)
		require.True(t, i.fell >= 0 && i.dip >= 0 && i.odds >= -2*telling && i.odds <= telling, "%v", i)
	}
}
