package adapt

import (
	"math"
	"time"
)

func (r *Rate) begin(p phase, low float64) { r.phase, r.low, r.grown = p, low, 0 }

// use lets the time pass by which the rate grows: that in which it was used.
func (r *Rate) use(now time.Time) {
	passed := now.Sub(r.used).Seconds()
	if r.used.IsZero() {
		passed = 0
	}
	r.used = now
	if perSecond, known := r.sent.perSecond(now); known && 2*perSecond < r.rate {
		return
	}
	r.grown += min(max(0, passed), max(0.25, paced*r.cost/r.rate))
}

// unit is the unit of the times by which a rate grows, in seconds: 1 at fast calls. At slow ones a
// second has too few calls to see anything; and where calls are refused by chance, it takes more of
// them to see that the rate is too high.
func (r *Rate) unit() float64 {
	if r.chance.known() {
		return max(1, 15*r.cost/r.rate)
	}
	if r.estimate == 0 {
		return 1
	}
	return max(1, r.cost/r.estimate)
}

// grow brings the rate up to date.
func (r *Rate) grow() {
	rate := r.limit(r.aim())
	// No higher than twice what is sent and answered: not on behalf of calls that are not made, nor to a server that gets slow.
	if rate > r.rate && r.phase != settled {
		for _, m := range []*meter{&r.sent, &r.done} {
			if perSecond, known := m.perSecond(r.used); known {
				rate = max(r.rate, min(rate, 2*perSecond))
			}
		}
	}
	if r.phase == regrowth && rate == r.ceiling && r.grown > r.period {
		r.begin(settled, rate)
		r.estimate = rate
	}
	if rate == r.limit(math.Inf(1)) || math.Abs(rate-r.rate) >= least*r.rate {
		r.rate = rate
	}
}

// aim returns the rate that the phase wants now.
func (r *Rate) aim() float64 {
	switch r.phase {
	case search:
		return r.low * math.Exp2(r.grown/(doubling*r.unit()))
	case regrowth:
		half := r.period / 2
		switch x := r.grown / half; {
		case x < 1:
			return r.estimate - float64((r.estimate-r.low)*math.Pow(1-x, 3))
		case x < 2:
			return r.estimate * (1 + float64((above-1)*math.Pow(x-1, 3)))
		default:
			return r.estimate * above * math.Exp2(math.Pow((r.grown-r.period)/(following*r.unit()), 1.5))
		}
	default:
		return math.Inf(1)
	}
}

// slow reports whether the rate is well below what the server accepts, so that a refusal is not about it.
func (r *Rate) slow() bool {
	if r.chance.trial.on {
		return r.chance.trial.slow
	}
	return r.phase == regrowth && r.proven && (r.rate <= 0.85*r.best.rate || r.grown < r.period/2 && !r.chance.known())
}

// examine begins a trial where chance is suspected, carries it on, and ends it.
func (r *Rate) examine(now time.Time) {
	if r.phase == search || r.Unknown() || r.best.rate == 0 {
		return
	}
	c := &r.chance
	if r.phase == regrowth && r.far() && c.climbs(r.rate < fallen*r.top) {
		r.ascend(now)
		return
	}
	switch c.examine(now) {
	case begun:
		r.low = r.rate // here the rate goes on afterwards
	case confirmed: // the cuts were wrong
		r.low = max(r.low, r.top)
		if r.searched {
			r.searched = false
			r.begin(search, r.limit(r.low))
		}
		r.rate = r.limit(r.low)
		r.period, r.wasted = soonest*r.unit(), 0
		r.estimate = max(r.estimate, r.rate)
	case refuted: // the refusals were right
		r.estimate = min(r.estimate, gentle.estimate*r.low)
		r.begin(regrowth, r.limit(gentle.rate*r.low))
		r.rate = r.low
	case unfounded:
		r.estimate = max(r.estimate, r.low)
		r.begin(regrowth, r.limit(r.low))
		r.rate = r.low
	case turned:
		r.rate = r.limit(r.low)
		if c.trial.slow {
			r.rate = r.limit(min(0.7*r.low, 0.65*r.best.rate))
		}
		c.trial.left = max(8, 0.7*r.rate/r.cost)
	}
}
