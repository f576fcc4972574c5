package adapt

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stopping server tells a refused call how many seconds it is to wait; 0: it accepts the call.
type stopping func(now float64) (stop float64)

func windowsOf(n int, per float64) stopping {
	ends, left := 0., 0
	return func(now float64) float64 {
		if now >= ends {
			ends, left = (math.Floor(now/per)+1)*per, n
		}
		if left--; left >= 0 {
			return 0
		}
		return math.Ceil(ends - now)
	}
}

func slowBucketOf(size, rate float64) stopping {
	level, last := size, 0.
	return func(now float64) float64 {
		level, last = min(size, level+rate*(now-last)), now
		if level >= 1 {
			level--
			return 0
		}
		return math.Ceil((1 - level) / rate)
	}
}

// penaltyAfter is a server that refuses everything for 30 s after more than n calls in a second.
func penaltyAfter(n int) stopping {
	until, count := 0., windowsOf(n, 1)
	return func(now float64) float64 {
		if now >= until && count(now) > 0 {
			until = now + 30
		}
		return max(0, math.Ceil(until-now))
	}
}

// Who waits for a minute after every five calls finds five a minute, not what the five went at. Before, each window
// refused a call: 20 to 40 % of all.
func TestCycle(t *testing.T) {
	for name, c := range map[string]struct {
		server      func() stopping
		least, most float64 // of the rate that is found
	}{
		"five a minute":            {func() stopping { return windowsOf(5, 60) }, .07, .1},
		"two a minute":             {func() stopping { return windowsOf(2, 60) }, .028, .04},
		"ten a minute":             {func() stopping { return windowsOf(10, 60) }, .14, .2},
		"one in ten seconds":       {func() stopping { return slowBucketOf(1, .1) }, .085, .12},
		"a small bucket":           {func() stopping { return slowBucketOf(2, .2) }, .16, .25},
		"a penalty after 5/s":      {func() stopping { return penaltyAfter(5) }, 2, 6},
		"a penalty after one call": {func() stopping { return penaltyAfter(1) }, .3, 1.2},
	} {
		r, server := New(unknown), c.server()
		r.Open()
		refused := 0
		for now := 0.1; now < 600; {
			r.Sent(at(now), 1)
			sent := now
			now += 0.05
			if stop := server(sent); stop > 0 {
				refused++
				r.Refused(at(now), at(sent), at(now+stop), false)
				now += stop
			} else {
				r.Accepted(at(now), at(sent), 1)
			}
			now = max(now, sent+1/r.Now())
		}
		require.GreaterOrEqual(t, r.Now(), c.least, name)
		require.LessOrEqual(t, r.Now(), c.most, name)
		require.LessOrEqual(t, refused, 12, name)
	}
}

// A rate that was reached a moment before a window was used up was not right.
func TestRightIsWhatLasted(t *testing.T) {
	r := New(unknown)
	r.rate, r.used, r.guesses, r.at = 8, 8, guesses, at(0)
	now := 0.
	for r.Now() < 17 { // no event comes: it grows quickly
		now += 1 / r.Now()
		r.Sent(at(now), 1)
		r.Accepted(at(now+.1), at(now), 1)
	}
	r.Refused(at(now+.1), at(now), at(now), false)
	require.InDelta(t, 11, r.right, 2)
}
