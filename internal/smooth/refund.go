package smooth

import "math"

// Return takes back all permits of a slot but the first kept ones. If the request waits, those behind it are granted
// earlier.
//
// If it was granted, as much comes back as the bucket would still hold without it, and so do stored permits with a
// price.
func (l *Ledger) Return(now int64, slot Slot, kept int) {
	l.advance(now)
	l.note(now)
	l.noteStore()
	h := l.history
	sold := slot.price
	scale := h.price.scale / sold.scale
	used, part := sold.curve.Price(slot.stored, float64(kept))
	taken, cost := sold.curve.Price(slot.stored, float64(slot.Permits))
	i, known := h.queue.index(slot.Number)
	waits := known && i >= h.queue.granted
	if !waits && l.upfront { // it held no more than fitted into the bucket
		cost = min(cost, float64(sold.curve.span()+sold.curve.Ahead()))
		if slot.Number <= h.shrunk {
			cost = min(cost, h.least*sold.scale)
		}
	}
	refund := (cost-part)*scale + l.early
	back := max(0, roundDown(refund))
	if amount, ok := h.huge[slot.Number]; ok && (waits || !l.upfront) {
		back = amount - min(amount, roundUp(part*scale))
		refund = float64(back)
		delete(h.huge, slot.Number)
	}
	if waits {
		back = l.shorten(i, back, kept == 0)
	} else {
		all := back
		if back = h.headrooms.refund(slot.Number, all); back < all {
			refund = math.Inf(1) // the rest has overflowed
		}
		l.empty = addSaturating(l.empty, -back)
	}
	l.carry(refund, back)
	if taken > used {
		l.store(h.rooms.refund(slot.Number, (taken-used)/sold.curve.Capacity) * l.curve.Capacity)
	}
	l.rescheduled(now)
}

// shorten takes a refund off a waiting request, or all of it, and returns what that was.
func (l *Ledger) shorten(i int, refund int64, all bool) int64 {
	q := &l.history.queue
	amount := q.entries[i].amount
	if all {
		q.leave(i)
	} else {
		amount = min(amount, refund)
		q.add(i, -amount)
	}
	return amount
}

// carry keeps a refund's rest of less than a nanosecond.
func (l *Ledger) carry(refund float64, rounded int64) {
	if rest := refund - float64(rounded); math.Abs(rest) < math.Abs(l.early)+2 { // else time has ended
		l.early = rest
	}
}

func (l *Ledger) rescheduled(now int64) {
	h := l.history
	h.moved, l.waits = now, !h.queue.empty()
	if over := l.level(now) - l.limit(); over > 0 { // no idle time: requests waited
		if l.empty += over; !l.waits {
			l.early = 0
		}
	}
	l.advance(now)
}
