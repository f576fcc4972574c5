package smooth

import "math"

// SetRate changes the rate from now on. While anything is owed or somebody waits, all times
// stay; otherwise what is stored scales with the capacity, and with it what may still come back.
func (l *Ledger) SetRate(now int64, permitsPerSecond float64) {
	if permitsPerSecond != l.curve.Rate {
		l.change(now, l.curve.AtRate(permitsPerSecond), 1)
	}
}

// SetCurve puts another curve of the same kind in place, as SetRate does.
func (l *Ledger) SetCurve(now int64, curve *Curve) { l.change(now, curve, 1) }

// Retime changes the rate from now on, and scales all that is owed, waits or may
// come back. If nothing is owed and nobody waits, it is SetRate.
func (l *Ledger) Retime(now int64, permitsPerSecond float64) {
	if permitsPerSecond == l.curve.Rate {
		return
	}
	curve, by := l.curve.AtRate(permitsPerSecond), 1.0
	if !l.curve.unlimited() {
		by = min(curve.Interval/l.curve.Interval, math.MaxFloat64)
	}
	l.change(now, curve, by)
}

// change puts a curve in place of the present one, and makes all times that are owed, or wait, by
// times as long.
func (l *Ledger) change(now int64, curve *Curve, by float64) {
	l.advance(now)
	old, origin, waiting := l.curve, l.origin(now), l.waiting()
	idle := !waiting && l.next <= origin
	l.spill(now)
	switch {
	case idle && old.Free():
		by = curve.span(curve.Capacity) / old.span(old.Capacity)
	case idle:
		by = 1
	case waiting:
		l.prepay(now, curve, by)
	}
	l.use(curve)
	unlimited := curve.unlimited() || old.unlimited()
	switch stored := l.stored * (old.Interval / curve.Interval) * by; { // the same time, scaled
	case unlimited:
		l.stored = curve.unlimitedStore()
	case idle || !curve.Free():
		l.stored = rescale(l.stored, old, curve)
	case stored <= math.MaxFloat64: // false for NaN
		l.stored = stored
	}
	if !idle && by != 1 {
		l.next, l.carry = shift(origin, (float64(l.next-origin)+l.carry)*by)
		if waiting {
			most := math.MaxInt64 - max(l.next, 0)
			l.book.queue.rebuild(func(sum int64) int64 {
				scaled, _ := whole(float64(sum)*by + 0.5)
				return min(scaled, most)
			})
		}
	}
	if b := l.book; b != nil {
		if unlimited || !l.rescale(by) {
			b.forget(l.number)
		}
		l.spill(now)
		b.changed(now)
		l.letGo(now)
	}
}

// prepay pays for requests that wait with the bucket's level, if that times by is more than it can
// hold under the new curve: so their times do not depend on what it can hold.
func (l *Ledger) prepay(now int64, curve *Curve, by float64) {
	origin := l.origin(now)
	level := l.saved() + float64(max(0, origin-l.next))
	if level*by <= curve.span(curve.Capacity) {
		return
	}
	held, part := whole(level)
	left := max(0, held-l.book.queue.owed)
	l.book.queue.rebuild(func(sum int64) int64 { return max(0, sum-held) })
	l.next = max(l.next, origin)
	if l.curve.Free() {
		l.stored = float64((float64(left) + part) * l.curve.Refill)
	}
}

// spill notes the room now, under one curve or the next: permits that come back had to fit into it.
func (l *Ledger) spill(now int64) {
	if b := l.book; b != nil {
		b.rooms.push(l.number-b.queue.waiting()+1, l.room(now))
	}
}

// use puts a curve in place of the present one; slots that have been sold keep their worth.
func (l *Ledger) use(curve *Curve) { l.curve = curve.worthy(l.curve.worth()) }

// rescale multiplies all that may come back. It reports false if that is not defined.
func (l *Ledger) rescale(by float64) bool {
	worth := l.curve.worth() * by
	if !(worth > 0 && worth <= math.MaxFloat64) { // there was no store, or there is none
		return false
	}
	l.curve = l.curve.worthy(worth)
	l.book.rooms.scale(by)
	return true
}

// forget has nothing come back of what has gone.
func (b *book) forget(newest uint64) {
	b.lost = newest - b.queue.waiting()
	b.rooms = b.rooms[:0]
}

// rescale turns permits of the store of one curve into permits of another's.
func rescale(permits float64, from, to *Curve) float64 {
	if from.Capacity == to.Capacity {
		return permits
	}
	if permits == 0 || from.Capacity == 0 {
		return 0
	}
	// The quotient first: it is small where the product could overflow.
	return min(permits/from.Capacity*to.Capacity, math.MaxFloat64)
}
