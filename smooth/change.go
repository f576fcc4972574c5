package smooth

import "math"

// A change of the rate is a function of the bucket's level: a positive level, what is stored, becomes stored times as
// long, and a negative level, what is owed, owed times. A request due after the level had risen by x is granted at that
// function of x. For Retime both are the old rate over the new.

// SetRate changes the rate from now on. What is owed keeps its time, and so do waiting requests. What is stored, or may
// come back, scales with the capacity; after a Retime it does not grow.
//
// SetRate and Retime compound: the last of 10 waiting requests at 10/s waits 1 s; after SetRate(20) still 1 s, and
// after Retime(10) then 2 s.
func (l *Ledger) SetRate(now int64, permitsPerSecond float64) {
	if permitsPerSecond != l.curve.Rate {
		l.SetCurve(now, l.curve.AtRate(permitsPerSecond))
	}
}

// SetCurve is SetRate with another curve of the same kind.
func (l *Ledger) SetCurve(now int64, curve *Curve) {
	permits := scaleStore(1, l.curve, curve)
	if l.record().retimed { // which may have kept more permits than scale with the capacity
		permits = min(permits, 1)
	}
	l.change(now, curve, 1, permits)
}

// Retime changes the rate from now on, and keeps all permits: stored (as far as they fit), owed, waited for, and those
// that may come back. Stored permits with a price scale with the capacity: the limiter stays as cold as it is.
func (l *Ledger) Retime(now int64, permitsPerSecond float64) {
	if permitsPerSecond != l.curve.Rate {
		curve := l.curve.AtRate(permitsPerSecond)
		l.record().retimed = true
		l.change(now, curve, sameTime(l.curve, curve), 1)
	}
}

// change replaces the curve: owed and permits are factors of an owed nanosecond and a stored permit.
func (l *Ledger) change(now int64, curve *Curve, owed, permits float64) {
	l.advance(now)
	l.note(now)
	old, stored := l.curve, l.factor(curve, owed, permits)
	if !curve.Free() {
		permits = scaleStore(1, old, curve)
	}
	granted, inDebt := stored, l.level(now) < 0
	if l.waits || inDebt {
		granted = min(stored, owed)
	} else if l.span > 0 && stored != 1 {
		l.lift(now)
	}
	l.stored = min(l.stored*permits, curve.Capacity, math.MaxFloat64)
	if owed != 1 || stored != 1 {
		l.stretch(now, owed, stored)
	}
	l.history.rescale(granted, owed)
	l.curve, l.span = curve, curve.span()
	if old.unlimited() || curve.unlimited() {
		l.unlimit(now, old, inDebt)
	}
	l.rescheduled(now)
}

// factor returns what a stored nanosecond becomes. Collected amounts do not grow after they have shrunk.
func (l *Ledger) factor(curve *Curve, owed, permits float64) float64 {
	if !curve.Free() {
		return owed
	}
	stored := finite(permits * sameTime(l.curve, curve))
	if math.Abs(stored-1) < 1e-12 {
		stored = 1 // but for what is rounded
	}
	if l.upfront && l.waits {
		if h := l.history; stored < owed {
			h.shrunk = h.number
		} else if h.queue.first().number <= h.shrunk {
			stored = owed
		}
	}
	return stored
}

// unlimit begins or ends a time without a limit. Debt is still paid.
func (l *Ledger) unlimit(now int64, old *Curve, inDebt bool) {
	if l.stored = 0; !l.curve.unlimited() {
		l.stored = l.curve.unlimitedStore()
	}
	if !inDebt && old.unlimited() {
		if l.empty, l.early = l.origin(now), 0; l.span > 0 {
			l.pour()
		}
	}
	l.history.headrooms.push(headroom{l.history.number, 0}) // what was sold for nothing, or before, does not come back
}

func (l *Ledger) lift(now int64) {
	l.stored += min(max(0, float64(l.level(now))+l.early)/l.curve.Interval, math.MaxFloat64)
	l.empty, l.early = l.origin(now), 0
}

func (l *Ledger) stretch(now int64, owed, stored float64) {
	debt := func(level float64) float64 {
		if level > 0 {
			return -level * stored
		}
		return -level * owed
	}
	level, last := l.level(now), debt(l.rest(now))
	first := roundUp(last)
	if l.waits {
		first = roundUp(debt(float64(level)))
	}
	l.empty = addSaturating(l.origin(now), first)
	if l.waits {
		most := math.MaxInt64 - max(0, l.empty)
		l.history.queue.rescale(func(sum int64) int64 {
			return min(most, max(0, roundUp(debt(float64(level-sum)))-first))
		})
	}
	if l.early = float64(first+l.owed()) - last; !(math.Abs(l.early) < 2+owed) { // time has ended
		l.early = 0
	}
}

func (h *history) rescale(granted, owed float64) {
	w := &h.worth
	w.granted, w.owed = w.granted*granted, w.owed*owed
	if !(min(w.granted, w.owed) > 1e-100 && max(w.granted, w.owed) < 1e100) { // SetRate up, Retime down, again and again
		*w = worth{1, 1}
		h.headrooms.push(headroom{h.number, 0})
	}
	for i := range h.headrooms {
		h.headrooms[i].time = max(0, roundDown(float64(h.headrooms[i].time)*granted))
	}
}

// sameTime returns what a nanosecond becomes if its permits stay.
func sameTime(from, to *Curve) float64 {
	if from.unlimited() {
		return 1
	}
	return finite(to.Interval / from.Interval)
}

func scaleStore(permits float64, from, to *Curve) float64 {
	if from.Capacity == to.Capacity {
		return permits
	}
	if permits == 0 || from.Capacity == 0 {
		return 0
	}
	// The quotient first: the product could overflow.
	return finite(permits / from.Capacity * to.Capacity)
}
