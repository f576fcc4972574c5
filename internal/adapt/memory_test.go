package adapt

import (
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
