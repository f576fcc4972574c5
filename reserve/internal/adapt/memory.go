package adapt

import "time"

const (
	lasting = 3.  // seconds of use, and as many calls as a proof has: the rate was right for long
	fallen  = 0.6 // of it: what leaves less has cut it far
)

// memory is that of a rate that was right for long, and that a few refusals have cut far. They may come from a limit
// that moved for a moment, or from a neighbour that came once. So it is tried again soon: within as long as the
// stop, and each time it is refused after twice as long, up to 25 s.
type memory struct {
	right    float64   // the rate that was right for long; 0: none
	recall   float64   // the rate that is tried again; 0: none
	wait     float64   // seconds of use until it is reached
	lasted   bool      // half of the ceiling, or more, was right for long
	pardoned time.Time // when it was at the ceiling, and one refusal did not disprove it
}

// remember notes what an event does to a rate, which it leaves at low.
func (r *Rate) remember(now time.Time, rate, low float64, stop time.Duration) {
	seconds := stop.Seconds()
	if r.ran(now) > lasting && r.accepted >= proof*r.cost && r.guesses == 0 {
		r.right = rate
	}
	r.lasted = r.lasted || 2*r.rate >= r.ceiling && r.grown > shortest
	switch {
	case r.rate >= r.ceiling && r.grown > shortest && now.Sub(r.pardoned).Seconds() > PerStop*max(1, seconds):
		r.pardoned = now
		r.recall, r.wait = r.rate, min(max(1, seconds), PerStop)
	case r.recall > 0 && r.grown > r.wait/2:
		if r.wait = 2 * max(r.wait, seconds); r.wait > PerStop {
			r.recall = 0
		}
	case r.recall == 0 && low < fallen*r.right:
		r.recall, r.wait = r.right, max(lasting, min(seconds, PerStop))
		r.right = 0
	}
}
