package model

// A WarmUp is what makes a warming-up limiter: Guava's period, in nanoseconds, and cold factor.
//
// In time it is a limiter with nothing saved up. Beside that it has a store of permits, which idle time fills, and
// which make what is sold dearer. A slot keeps the price list that it was sold at. What is given back had taken permits
// out of the store. They return there at once, unless the store has been full since: then they are there again already.
// Time that has passed is gone, but for the newest one's: see restore.
type WarmUp struct{ Period, ColdFactor float64 }

// A curve is Guava's price list at one rate.
type curve struct {
	interval float64 // of a fresh permit
	capacity float64 // permits
	bend     float64 // stored permits up to here cost what fresh ones do
	slope    float64 // and each beyond costs so much more than the one before
}

func (w *WarmUp) curve(rate float64) *curve {
	c := &curve{interval: interval(rate)}
	cold := c.interval * w.ColdFactor
	c.bend = w.Period / c.interval / 2
	c.capacity = c.bend + 2*w.Period/(c.interval+cold)
	c.slope = (cold - c.interval) / (c.capacity - c.bend)
	return c
}

// took is how many of so many permits come out of a store.
func took(permits int, stored float64) float64 { return min(float64(permits), stored) }

// cost is that of so many permits, the dearest stored ones first.
func (c *curve) cost(permits int, stored float64) float64 {
	extra := func(stored float64) float64 { // for the last one, over a fresh one
		return max(0, stored-c.bend) * c.slope
	}
	top, low := stored, stored-took(permits, stored)
	slant := max(0, top-max(low, c.bend)) // the length of the stretch with a slope
	return float64(permits)*c.interval + slant*(extra(top)+extra(low))/2
}

// sell sets the price of a request.
func (w *WarmUp) sell(r *request, rate, stored float64) {
	c := w.curve(rate)
	r.curve, r.stored = c, stored
	r.price = func(permits int) float64 { return c.cost(permits, stored) }
}

// take records that a request was sold.
func (l *Limiter) take(r request) {
	l.newest = max(0, r.id) // none after a charge
	if l.config.Warm != nil {
		l.stored -= took(r.permits, r.stored)
	}
}

// idle lets time pass in which no request is granted. The rest of it, when nothing is owed any more, fills the store.
// The whole of an empty one takes the period.
func (l *Limiter) idle(d float64) {
	if l.config.Warm == nil || len(l.line) > 0 {
		return
	}
	l.fill(d + min(0, l.level()))
}

func (l *Limiter) fill(d float64) {
	c := l.config.Warm.curve(l.rate)
	l.store(max(0, d) * c.capacity / l.config.Warm.Period)
}

// store puts permits into the store.
func (l *Limiter) store(permits float64) {
	capacity := l.config.Warm.curve(l.rate).capacity
	if l.stored += permits; l.stored >= capacity {
		l.stored, l.full = capacity, l.lastID
	}
}

// restock scales the store to another rate.
func (l *Limiter) restock(rate float64) {
	if w := l.config.Warm; w != nil {
		l.stored *= w.curve(rate).capacity / w.curve(l.rate).capacity
	}
}

// restore gives back to the store what a request took, where that comes to less now. The newest one, before
// its stretch is over, also gives back the time that would have been idle without it.
func (l *Limiter) restore(r request, actual int) {
	c := l.config.Warm.curve(l.rate)
	back := took(r.permits, r.stored) - took(actual, r.stored)
	if r.id > l.full {
		l.store(back * c.capacity / r.curve.capacity)
	}
	if r.id != l.newest || len(l.line) == 0 && l.level() >= 0 {
		return
	}
	without := l.Clone()
	without.find(r.id).permits = actual
	if n := len(without.line); n > 0 {
		if n > 1 || actual > 0 {
			return // its stretch has not begun, or goes on
		}
		without.line = nil
	}
	free := max(r.asked, without.paidFor())
	l.fill(l.now - free)
}

// paidFor is when what was granted was paid for: the limiter's time.
func (l *Limiter) paidFor() float64 {
	if len(l.past) == 0 {
		return 0
	}
	c := l.Clone()
	c.now = l.past[len(l.past)-1].at
	return c.now - c.level()
}

// Unclear reports whether the rules leave open how much idle time a settlement gives back. They do for a request whose
// stretch has begun, and which is the newest only because later ones were given back, or with a change of the rate
// since. Paid upfront they also do if only a part comes back, or if the stretch began sooner because others left.
func (l *Limiter) Unclear(id, actual int) bool {
	r := l.find(id)
	if l.config.Warm == nil || r == nil || r.settled || actual >= r.reserved {
		return false
	}
	if len(l.line) == 0 && l.level() >= 0 {
		return false // nothing is under way
	}
	if r.id != l.newest {
		for later := r.id + 1; later <= l.lastID; later++ {
			if l.find(later) != nil && l.find(later).permits > 0 {
				return false
			}
		}
		return true
	}
	for _, e := range l.past {
		if !e.went && e.at >= r.asked {
			return true
		}
	}
	return l.config.Upfront && (actual > 0 || l.left >= r.asked)
}
