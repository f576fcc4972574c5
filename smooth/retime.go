package smooth

import "math"

// A change of the rate is one function of the bucket's level: f. What is stored, the positive level,
// scales with the capacity. What is owed, the negative level, keeps its time; Retime scales that too.
//
// All else follows. A waiting request that is granted at level x from now, negative, is granted at f(x).
// A refund of x, had it come before the change, would have raised a level L to L + x, so
// it is worth f(L+x) - f(L) now.

// SetRate changes the rate from now on. What is owed, and the times of all that wait, stay; what is
// stored scales with the capacity, and with it what may still come back.
//
// Followed by Retime it compounds: the last of 10 waiting requests at 10/s waits 1 s; after SetRate(20) it is still 1
// s, and after Retime(10) then 2 s. Whoever follows a server uses Retime only.
func (l *Ledger) SetRate(now int64, permitsPerSecond float64) {
	if permitsPerSecond != l.curve.Rate {
		l.change(now, l.curve.AtRate(permitsPerSecond), 1)
	}
}

// SetCurve puts another curve of the same kind in place, as SetRate does.
func (l *Ledger) SetCurve(now int64, curve *Curve) { l.change(now, curve, 1) }

// Retime changes the rate from now on, and scales all that is owed, waits or may
// come back. If nothing is owed and no request waits, it is SetRate.
func (l *Ledger) Retime(now int64, permitsPerSecond float64) {
	if permitsPerSecond == l.curve.Rate {
		return
	}
	curve, owed := l.curve.AtRate(permitsPerSecond), 1.0
	if !l.curve.unlimited() {
		owed = min(curve.Interval/l.curve.Interval, math.MaxFloat64)
	}
	l.change(now, curve, owed)
}

// change puts a curve in place of the present one; the time that is owed becomes owed times as long.
func (l *Ledger) change(now int64, curve *Curve, owed float64) {
	l.advance(now)
	old := l.curve
	stored := storedTime(old, curve, owed)
	f := func(level float64) float64 {
		if level > 0 {
			return level * stored
		}
		return level * owed
	}
	last := l.level(now) // after all that wait
	if l.waits {
		last += l.early - float64(l.owed())
	}
	same := owed == 1 && (stored == 1 || !l.waits || l.next >= l.origin(now))
	if l.history != nil {
		l.recordChange(now, curve, last, owed, stored)
	}
	if !same && (l.waits || last < 0) {
		origin := l.origin(now)
		level := float64(origin - l.next)
		debt := roundUp(-f(level))
		next := addSaturating(origin, debt)
		if l.waits {
			most := math.MaxInt64 - max(next, 0)
			l.history.queue.rescale(func(sum int64) int64 {
				return min(most, max(0, roundUp(-f(level-float64(sum)))-debt))
			})
		}
		l.next = next
		l.early = float64(next-origin+l.owed()) + f(last)
		if !(l.early > 0 && l.early < 2+owed) { // but for what is rounded
			l.early = 0
		}
	}
	l.stored = scaleStore(l.stored, old, curve)
	if old.unlimited() || curve.unlimited() {
		l.stored = curve.unlimitedStore()
	}
	l.curve = curve
	if l.waits && old.unlimited() {
		l.next, l.early = move(l.next, l.early, -curve.toTime(l.stored))
		if curve.Free() {
			l.stored = 0
		}
	}
	if l.history != nil {
		l.rescheduled(now)
		if l.waits {
			l.grantWaiting(now)
		}
	}
}

// recordChange records what refunds must know of a change.
func (l *Ledger) recordChange(now int64, curve *Curve, last, owed, stored float64) {
	h, time := l.history, l.bucketTime(now)
	l.flush()
	granted := l.number
	if l.waits {
		granted = h.queue.number(h.queue.granted+1) - 1
	}
	if l.curve.Free() {
		h.headrooms.push(granted, l.headroom(now)/h.changes.scale)
	}
	if l.upfront && l.waits { // what the bucket could hold for a large request scales like what it holds
		q, then, now := &h.queue, l.curve.toTime(l.curve.Capacity), curve.toTime(curve.Capacity)
		for i := q.granted + 1; i <= q.size(); i++ {
			if asked := q.time(i); asked > charged {
				most := min(then+float64(time-max(asked, h.lastGrant)), max(then, float64(q.amount(i))))
				q.note(i, time-int64(max(0, most*stored-now)))
			}
		}
		h.lastGrant = -1 << 62
	}
	switch {
	case l.curve.unlimited() || curve.unlimited() || owed == 0:
		h.forfeited = granted
		if owed == 0 { // all are granted now
			h.forfeited = l.number
		}
		h.headrooms, h.changes = nil, changes{scale: h.changes.scale}
		return
	case owed == stored: // then scale says all
	default:
		c := change{number: l.number, owed: owed, stored: stored, headrooms: h.headrooms}
		c.first, c.head, c.rest = l.number+1, l.number+1, math.Inf(1)
		level := l.level(now)
		c.level, c.most = level/h.changes.scale, l.most()/h.changes.scale
		if q := &h.queue; l.waits {
			i := q.granted + 1
			c.first = q.number(i)
			for i < q.size() && float64(q.before(i+1)) <= level {
				i++
			}
			c.head = q.number(i)
			if float64(q.before(i)) < level {
				c.rest = max(0, float64(q.before(i)+q.amount(i))-level) / h.changes.scale
			}
		}
		h.changes.push(c)
		h.headrooms = nil
	}
	h.changes.scale *= owed
	if h.changes.scale < 1e-100 || h.changes.scale > 1e100 { // after SetRate up and Retime down, over and over
		h.forfeited, h.headrooms, h.changes = l.number, nil, changes{scale: 1}
	}
}

// storedTime returns what a nanosecond of the level becomes where it is stored free of charge. Elsewhere
// nothing is, and it is like owed time.
func storedTime(from, to *Curve, owed float64) float64 {
	if from.unlimited() || to.unlimited() || !from.Free() {
		return owed
	}
	stored := scaleStore(1, from, to) * (to.Interval / from.Interval)
	for _, same := range []float64{1, owed} { // but for what is rounded
		if math.Abs(stored/same-1) < 1e-12 {
			return same
		}
	}
	return min(stored, math.MaxFloat64)
}

// scaleStore turns permits of the store of one curve into permits of another's.
func scaleStore(permits float64, from, to *Curve) float64 {
	if from.Capacity == to.Capacity {
		return permits
	}
	if permits == 0 || from.Capacity == 0 {
		return 0
	}
	// The quotient first: it is small where the product could overflow.
	return min(permits/from.Capacity*to.Capacity, math.MaxFloat64)
}

// changes are what refunds must know of changes of the rate before them. Where stored and owed
// nanoseconds scale alike, as with Retime and a capacity in permits, that is in scale. Other changes are listed.
type changes struct {
	scale float64 // of a nanosecond that was sold under the first curve; all below are without it
	list  []change
}

type change struct {
	number       uint64    // the newest request then
	owed, stored float64   // what a nanosecond became
	headrooms    headrooms // before it, since the change before
	level, most  float64   // right before it: what the bucket held, and could hold

	// Of the requests that waited, from first on, those before head had collected all that they needed; those
	// behind nothing, and head itself all but rest.
	first, head uint64
	rest        float64
}

const (
	maxChanges   = 64 // bounds the list. Beyond it neighbours of the older half are merged, which values refunds lower
	oldHeadrooms = 64 // bounds the headrooms of each
)

func (s *changes) push(c change) {
	for len(c.headrooms) > oldHeadrooms {
		c.headrooms = c.headrooms.merged()
	}
	if len(s.list) == maxChanges { // the older half: most refunds are of recent requests
		for i := 0; i < maxChanges/2; i += 2 {
			a, b := s.list[i], s.list[i+1]
			for _, h := range b.headrooms {
				a.headrooms.push(h.after, h.time)
			}
			for len(a.headrooms) > oldHeadrooms {
				a.headrooms = a.headrooms.merged()
			}
			b.headrooms = a.headrooms
			b.level, b.most, b.head = max(a.level, b.level, 0), min(a.most, b.most), b.number+1
			b.owed, b.stored = 1, min(1, a.stored/a.owed)*min(1, b.stored/b.owed)
			s.list[i/2] = b
		}
		s.list = append(s.list[:maxChanges/4], s.list[maxChanges/2:]...)
	}
	s.list = append(s.list, c)
}

// refund returns what a refund of a slot, in nanoseconds, is worth now, and notes it. Used is what is not refunded of
// it, and most what the bucket could hold for it if it was granted since the last change.
func (s *changes) refund(slot Slot, refund, used, most float64) float64 {
	refund, used = refund/slot.scale, used/slot.scale
	bounded := false
	for i := range s.list {
		c := &s.list[i]
		ratio := c.stored / c.owed
		switch {
		case c.number < slot.Number: // not sold yet
		case slot.Number < c.first: // granted
			if !bounded {
				refund, bounded = min(refund, max(0, c.most-used)), true
			}
			refund = min(refund, c.headrooms.least(slot.Number))
			c.headrooms.subtract(slot.Number, refund)
			owed := min(refund, max(0, -c.level))
			c.level += refund
			refund = owed + (refund-owed)*ratio
		case slot.Number < c.head:
			refund, used = refund*ratio, used*ratio
		case slot.Number == c.head:
			rest := min(refund, c.rest)
			stored := min(used, max(0, refund+used-c.rest))
			refund, used = rest+(refund-rest)*ratio, used-stored+stored*ratio
		}
	}
	if !bounded {
		refund = min(refund, max(0, most/s.scale-used))
	}
	return refund * s.scale
}
