package model

// A WarmUp is Guava's period, in nanoseconds, and cold factor. In time such a limiter saves nothing up. Beside that
// it has a store of permits, which idle time fills, and which make what is sold dearer. A slot keeps the price list
// that it was sold at. What is given back returns to the store at once, as far as it would have fitted ever since.
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

func took(permits int, stored float64) float64 { return min(float64(permits), stored) }

func (c *curve) cost(permits int, stored float64) float64 {
	extra := func(stored float64) float64 { // for the last one, over a fresh one
		return max(0, stored-c.bend) * c.slope
	}
	top, low := stored, stored-took(permits, stored)
	slant := max(0, top-max(low, c.bend)) // the length of the stretch with a slope
	return float64(permits)*c.interval + slant*(extra(top)+extra(low))/2
}

func (w *WarmUp) sell(r *request, rate, stored float64) {
	c := w.curve(rate)
	r.curve, r.stored = c, stored
	r.price = func(permits int) float64 { return c.cost(permits, stored) }
}

// idle lets time pass without a request. When nothing is owed any more, the rest fills the store: an empty one in the
// period.
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

func (l *Limiter) store(permits float64) {
	l.stored = min(l.stored+permits, l.Full())
	l.rooms = append(l.rooms, room{l.lastID + l.charges, 1 - l.stored/l.Full()})
}

func (l *Limiter) restock(rate float64) {
	w := l.config.Warm
	l.stored *= w.curve(rate).capacity / w.curve(l.rate).capacity
}

// restore gives back to the store what a request took, and needs no longer.
func (l *Limiter) restore(r request, actual int) {
	back := (took(r.permits, r.stored) - took(actual, r.stored)) / r.curve.capacity
	for _, m := range l.rooms {
		if m.sold > r.sold {
			back = min(back, m.part)
		}
	}
	for i := range l.rooms {
		if l.rooms[i].sold > r.sold {
			l.rooms[i].part -= back
		}
	}
	l.store(back * l.Full())
}

// Full is what the store of a warming-up limiter can hold.
func (l *Limiter) Full() float64 { return l.config.Warm.curve(l.rate).capacity }
