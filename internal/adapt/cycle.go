package adapt

import (
	"math"
	"time"
)

// A cycle is the time from an accepted call after a stop to the end of the next stop. A stop that is shorter after
// slower calls is the rest of a window, or of the time in which a bucket gets a permit: what was accepted in a cycle,
// over its time, is the rate. A penalty does not get shorter.
type cycle struct{ ran, lasts, accepted float64 }

const (
	tells = 2.  // seconds: stops are told in whole ones
	apart = 2.5 // seconds by which the next cycle is to be slower
	most  = 12. // calls: a refusal for each dozen is cheap
)

// cycled returns what a refusal with a stop leaves of a rate that would be low, and whether that is the server's.
func (r *Rate) cycled(now time.Time, stop time.Duration, low float64) (rate float64, known bool) {
	first := r.first
	if r.at.IsZero() {
		first = r.begun
	}
	before, c := r.cycle, cycle{ran: now.Sub(first).Seconds(), accepted: r.accepted}
	c.lasts = c.ran + stop.Seconds()
	if r.cycle = c; stop.Seconds() <= soon {
		r.cycle = cycle{}
		return low, false
	}
	again := before.lasts > 0 && math.Abs(c.accepted-before.accepted) <= r.cost
	again = again && c.accepted > 0 && c.accepted < most*r.cost && 2*(c.accepted+r.cost) >= c.ran*r.rate
	slower, longer := math.Abs(c.ran-before.ran), math.Abs(c.lasts-before.lasts)
	switch {
	case !again:
	case slower >= tells && longer <= slower/2:
		return min(r.rate, c.accepted/c.lasts), true
	case slower < tells && r.rate < 1.25*gentle*r.cost:
		if longer < tells {
			r.cycle.ran, r.cycle.lasts = before.ran, before.lasts
		}
		try := c.accepted / (c.ran + apart)
		if c.accepted >= 2*r.cost {
			try = max(try, r.rate/2)
		}
		low = min(low, try)
	}
	return low, false
}
