package adapt

import "time"

const (
	lasting = 3. // seconds of use, with a proof: the rate was right for long
)

// memory keeps a rate that was right for long before refusals cut it far: a neighbour may have come once. The rate is
// tried again within the stop's length, then after twice as long, up to 25 s.
type memory struct {
	right    float64   // the rate that was right for long, or 0
	long     bool      // it was so for half a period
	recall   float64   // the rate to try again, or 0
	wait     float64   // seconds of use until then
	limited  float64   // the rate that a 429 cut last, or 0
	lasted   bool      // half of the ceiling, or more, was right for long
	pardoned time.Time // when a refusal at the ceiling was last forgiven
}

func (r *Rate) remember(now time.Time, rate float64, stop time.Duration) {
	seconds := stop.Seconds()
	long := r.grown > r.period()/2
	if r.ran(now) > lasting && r.accepted >= proof*r.cost && r.guesses == 0 && (long || !r.long) {
		r.right, r.long = rate, long
	}
	r.lasted = r.lasted || 2*r.rate >= r.ceiling && r.grown > shortest
	switch {
	case r.rate >= r.ceiling && r.grown > shortest && now.Sub(r.pardoned).Seconds() > PerStop*max(1, seconds):
		r.pardoned = now
		r.recall, r.wait = r.rate, min(max(1, seconds), PerStop)
	case r.recall > 0 && r.grown > r.wait/2:
		if r.wait = 2 * max(r.wait, seconds); r.wait > PerStop {
			r.recall, r.right, r.long = 0, 0, false
		}
	}
}

// retry plans to try the rate that was right again, if refusals have cut it far.
func (r *Rate) retry(stop time.Duration) {
	if r.recall == 0 && r.rate < unproven*r.right {
		r.recall, r.wait = r.right, max(lasting, min(stop.Seconds(), PerStop))
		r.right, r.long = 0, false
	}
}
