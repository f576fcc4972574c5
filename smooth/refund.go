package smooth

import "math"

// Return takes back all permits of a slot but the first kept ones (fewer than it has).
//
// If the request waits, those behind it are granted earlier. If it was granted, as much comes back as the bucket would
// still hold without it. Stored permits with a price return to the store as far as they fit.
func (l *Ledger) Return(now int64, slot Slot, kept int) {
	l.advance(now)
	l.note(now)
	h := l.history
	sold := slot.price
	scale := h.price.scale / sold.scale
	used, part := sold.curve.Price(slot.stored, float64(kept))
	taken, cost := sold.curve.Price(slot.stored, float64(slot.Permits))
	if i, known := h.queue.index(slot.Number); known && i >= h.queue.granted {
		l.shorten(i, (cost-part)*scale+l.early, kept == 0)
	} else {
		if l.upfront { // it held no more than fitted into the bucket
			cost = min(cost, float64(sold.curve.span()))
			if slot.Number <= h.shrunk {
				cost = min(cost, h.least*sold.scale)
			}
		}
		l.repay(slot.Number, (cost-part)*scale+l.early)
	}
	if permits := scaleStore(taken-used, sold.curve, l.curve); permits > 0 {
		l.store(permits)
	}
	l.rescheduled(now)
}

// shorten takes a refund off a waiting request, or all of it.
func (l *Ledger) shorten(i int, refund float64, all bool) {
	q := &l.history.queue
	amount := q.entries[i].amount
	if all {
		q.leave(i)
	} else {
		amount = max(0, min(amount, roundDown(refund)))
		q.add(i, -amount)
	}
	l.carry(refund, amount)
}

// repay gives a refund of a granted request back.
func (l *Ledger) repay(number uint64, refund float64) {
	all := max(0, roundDown(refund))
	time := l.history.headrooms.refund(number, all)
	if l.empty -= time; time == all {
		l.carry(refund, time)
	}
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
