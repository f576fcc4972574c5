package adapt

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crowdedOut has others take nearly all of a limit of 20/s for minutes, and tells the rate then: one call in twenty is
// accepted.
func crowdedOut(r *Rate, from, to float64, stop time.Duration) {
	for now, n := from, 0; now < to; n++ {
		sent := at(now)
		if n%20 == 0 {
			r.Accepted(sent, sent, 1)
		} else {
			r.Refused(sent, sent, sent.Add(stop), false)
			now += stop.Seconds()
		}
		now += max(0.05, 1/r.Now())
	}
}

// The rate that was right is kept for ten minutes: when a neighbour leaves after two, the program is back within a minute.
// Before, it was forgotten after three tries.
func TestBackWhenOthersLeave(t *testing.T) {
	for _, stop := range []time.Duration{0, time.Second} {
		r := New(20)
		send(&r, 20, 0, 60)
		crowdedOut(&r, 60, 180, stop)
		require.Less(t, r.Now(), 5., "%v", stop)
		follow(&r, 180, 240)
		require.Greater(t, r.Now(), 16., "%v", stop)
	}
}

// After a block a rate is kept for 50 times as long, but not one that others have cut before. Before, growth from there
// took hours.
func TestBlockedWhileOthersCame(t *testing.T) {
	for _, ceiling := range []float64{20, 40} {
		r := New(20)
		send(&r, 20, 0, 60)
		r.ceiling = ceiling
		crowdedOut(&r, 60, 120, 0)
		require.Less(t, r.Now(), 10.)
		r.Blocked(at(180), time.Minute)
		follow(&r, 180, 300)
		require.Greater(t, r.Now(), 16., "%v", ceiling)
	}
}

// A right rate of more than ten minutes ago is tried no more: a refusal then leaves what was accepted, not what the try
// began with.
func TestRightLongAgo(t *testing.T) {
	left := map[float64]float64{}
	for _, ago := range []float64{599, 601} {
		r := found(50)
		r.right, r.rightAt, r.retry, r.wait, r.grown, r.after, r.accepted = 100, at(1000-ago), true, 1, 5, 20, 5
		r.Refused(at(1000.5), at(1000.5), at(1000.5), false)
		left[ago] = r.rate
	}
	require.InDelta(t, 20, left[599], 0.1)
	require.Greater(t, left[601], 23.)
}

// Others had used all, so no refusal has cut the rate: a block leaves the rate less two steps.
func TestBlockedByOthers(t *testing.T) {
	r := New(100)
	r.Blocked(at(60), 49*time.Second)
	require.InEpsilon(t, 100*math.Exp(-2*step), r.Now(), 0.01)
}

// A limit of few calls is the same for ten minutes, then a tenth for five, and is back: so is the rate, three minutes
// later at most. No period without an event confirms such a rate.
func TestRightOfFewCalls(t *testing.T) {
	for _, limit := range []float64{1, 5} {
		s := shared{limit: limit, falls: 600, part: 0.1, warm: 600, ends: 900}
		rates := []Rate{New(unknown)}
		rates[0].Accepted(at(0), at(-1), 1)
		s.run(rates)
		s.limit, s.warm, s.ends = limit, 960, 1080
		s.run(rates)
		used, _, _ := s.outcome()
		require.Greater(t, used, 0.8, "%v/s", limit)
	}
}
