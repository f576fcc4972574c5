package smooth

import "math"

// A change of the rate keeps times or permits. All follows: what is stored, owed, waited for, and what may come back.
// To keep permits, times become the old rate over the new as long.

// SetRate changes the rate. If the capacity is a time, times stay; if it is a number of permits, or after a Retime,
// permits stay. Stored permits with a price scale with the capacity: the limiter stays as cold as it is.
func (l *Ledger) SetRate(now int64, permitsPerSecond float64) {
	if permitsPerSecond != l.curve.Rate {
		l.SetCurve(now, l.curve.AtRate(permitsPerSecond))
	}
}

// SetCurve is SetRate with another curve. Permits stay if either capacity is a number of permits: otherwise two
// versions of a limiter that ask in turns would double what is stored each time. Times stay if stored permits have a
// price.
func (l *Ledger) SetCurve(now int64, curve *Curve) {
	old, scale := l.curve, 1.0
	permits := (old.Fixed || curve.Fixed) && old.Free() && curve.Free()
	if (l.record().retimed || permits) && !old.unlimited() {
		scale = min(curve.Interval/old.Interval, math.MaxFloat64)
	}
	l.change(now, curve, scale)
}

func (l *Ledger) Adopt(now int64, curve *Curve, upfront bool) {
	l.SetCurve(now, curve)
	l.upfront = upfront
}

// Retime is SetRate, but permits stay in any case.
func (l *Ledger) Retime(now int64, permitsPerSecond float64) {
	if permitsPerSecond != l.curve.Rate {
		l.record().retimed = true
		l.SetRate(now, permitsPerSecond)
	}
}

// change replaces the curve. A nanosecond becomes scale.
func (l *Ledger) change(now int64, curve *Curve, scale float64) {
	l.advance(now)
	l.note(now)
	h, old := l.history, l.curve
	l.restock(now, curve, scale)
	if scale != 1 {
		if !l.waits && l.span > 0 && l.level(now) >= 0 {
			l.stored += min(max(0, l.rest(now))/old.Interval, math.MaxFloat64)
			l.empty, l.early = l.origin(now), 0
		}
		l.stretch(now, scale)
	}
	l.stored = min(l.stored, curve.Capacity, math.MaxFloat64)
	h.reprice(curve, scale)
	before := float64(l.span) * scale
	if l.curve, l.span = curve, curve.span(); l.waits && float64(l.span) < before-1-scale {
		h.shrink(l.span)
	}
	h.eras = h.eras.after(h.queue.granted < len(h.queue.entries), h.number, old.Ahead(), scale)
	if old.unlimited() { // debt is still paid; what was sold for nothing, or before, does not come back
		if l.stored = 0; curve.Free() {
			l.stored = curve.Capacity
		}
		l.empty = max(l.empty, l.origin(now))
		l.fill(l.origin(now))
		h.headrooms.push(headroom[int64]{h.number, 0})
		if curve.Free() {
			h.rooms.push(headroom[float64]{h.number, 0})
		}
	}
	l.rescheduled(now)
}

func (l *Ledger) restock(now int64, curve *Curve, scale float64) {
	old := l.curve
	switch {
	case !curve.Free() || !old.Free(): // it stays as cold as it is
		l.stored = scaleStore(l.Stored(now), old, curve)
		if old.Free() && l.rest(now) > 0 {
			l.empty, l.early = l.origin(now), 0
		}
	case scale == 1 && l.stored > 0 && !curve.unlimited(): // they are time, too
		l.stored = min(l.stored*(old.Interval/curve.Interval), math.MaxFloat64)
	}
}

func (h *history) reprice(curve *Curve, scale float64) {
	for number, amount := range h.huge {
		if scale != 1 {
			h.huge[number] = roundDown(float64(amount) * scale)
		}
	}
	scale *= h.price.scale
	if !(scale > 1e-100 && scale < 1e100) { // SetRate up, Retime down, again and again
		scale = 1
		h.headrooms.push(headroom[int64]{h.number, 0})
	}
	h.price = &price{curve, scale}
}

// shrink notes that the bucket became smaller while requests wait.
func (h *history) shrink(span int64) {
	if h.queue.first().number > h.shrunk {
		h.least = math.MaxFloat64
	}
	h.shrunk, h.least = h.number, min(h.least, float64(span)/h.price.scale)
}

func (l *Ledger) stretch(now int64, scale float64) {
	h, level, last := l.history, l.level(now), -l.rest(now)*scale
	first := roundUp(last)
	if l.waits {
		first = roundUp(-float64(level) * scale)
	}
	l.empty = addSaturating(l.origin(now), first)
	if l.waits {
		most := math.MaxInt64 - max(0, l.empty)
		h.queue.rescale(func(sum int64) int64 { return min(most, roundUp(float64(sum-level)*scale)-first) })
	}
	if l.early = float64(first+l.owed()) - last; !(math.Abs(l.early) < 2+scale) { // time has ended
		l.early = 0
	}
	for i := range h.headrooms {
		h.headrooms[i].room = max(0, roundDown(float64(h.headrooms[i].room)*scale))
	}
}

func scaleStore(permits float64, from, to *Curve) float64 {
	if permits == 0 || from.Capacity == to.Capacity {
		return permits
	}
	// The quotient first: the product could overflow.
	return min(permits/from.Capacity*to.Capacity, math.MaxFloat64)
}
