package adapt

import (
	"math"
	"time"
)

const (
	lasting   = 3.   // seconds of use, with a proof: the rate was right
	confirmed = 1.5  // periods without an event confirm a rate
	far       = 0.4  // of the right rate is far below it, after a few tries
	soonest   = 1.5  // seconds until the first try
	mostWait  = 0.5  // of a period, between tries
	climb     = 0.3  // of the wait, for a try
	steepest  = 2.   // of the logarithm, per second, in a try
	still     = 0.95 // of the right rate is right, too
	fade      = 0.97 // of the right rate remains after a try that failed
)

// memory keeps the rate that was right, for ten minutes: a neighbour, or a lower limit, may have come for a while. If
// events cut the rate far below, the right one is tried after half of the stop, 1.5 to 12.5 s. Each try that fails
// doubles the wait, up to half a period, and ends where it began, or at what was accepted.
type memory struct {
	right     float64   // 0: none
	rightAt   time.Time // when it was last right
	retry     bool      // it is to be tried
	wait      float64   // seconds of use until then
	limited   float64   // the rate that a 429 cut last, or 0
	limitedAt time.Time // when that was
	pardoned  time.Time // when a refusal at the ceiling was last forgiven
}

// tries reports whether the right rate is being tried.
func (r *Rate) tries(now time.Time) bool {
	return r.retry && r.grown > r.wait && now.Sub(r.rightAt) <= remembered
}

// remember takes note of a rate that a refusal has cut to low.
func (r *Rate) remember(now time.Time, rate, low float64, stop time.Duration) {
	seconds, tried := stop.Seconds(), r.tries(now)
	switch {
	case r.confirms(now, rate):
		r.right, r.rightAt, r.wait, tried = rate, now, 0, false
	case now.Sub(r.rightAt) > remembered:
		r.right = 0
	case !tried && rate >= still*r.right && r.accepted >= proof*r.cost && r.guesses == 0:
		r.rightAt = now
	}
	most := mostWait * r.period()
	pardon := r.rate >= r.ceiling && r.grown > shortest && now.Sub(r.pardoned).Seconds() > PerStop*max(1, seconds)
	switch {
	case pardon:
		r.pardoned, r.wait = now, min(max(1, seconds), PerStop)/2
	case tried:
		r.wait, r.right = min(2*r.wait, most), max(fade*r.right, rate)
	case r.wait == 0:
		r.wait = max(soonest, min(seconds, PerStop)/2)
	}
	part := far
	if r.wait < most {
		part = unproven
	}
	r.retry = pardon || r.retry && !tried || low < part*r.right
}

// confirms reports whether a rate was right until now.
func (r *Rate) confirms(now time.Time, rate float64) bool {
	if r.ran(now) <= lasting || r.accepted < proof*r.cost || r.guesses > 0 {
		return false
	}
	old := now.Sub(r.rightAt) > remembered
	return r.right == 0 || old || r.grown > confirmed*r.period()
}

// recall plans to try a rate at once.
func (r *Rate) recall(now time.Time, rate float64) {
	if now.Sub(r.rightAt) > remembered {
		r.right = 0
	}
	r.right, r.rightAt, r.wait, r.retry = max(r.right, rate), now, 1, true
}

// approach returns the growth of the rate's logarithm per second in a try.
func (r *Rate) approach(now time.Time, passed float64) float64 {
	if !r.tries(now) || r.rate >= r.right {
		return 0
	}
	return min(math.Log(r.right/r.rate)/max((1+climb)*r.wait-r.grown, passed), steepest)
}

// failed returns what a cut of a try leaves: what it began with, or what was accepted.
func (r *Rate) failed(now, sent time.Time, low float64) float64 {
	if !r.tries(now) || r.rate >= r.right {
		return low
	}
	return min(low, max(r.after, r.measured(sent)))
}
