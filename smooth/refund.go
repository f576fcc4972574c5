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
	used, part := slot.curve.Price(slot.stored, float64(kept))
	taken, cost := slot.curve.Price(slot.stored, float64(slot.Permits))
	cost = finite(cost)
	worth := finite(cost * (h.worth.granted / slot.worth.granted))
	back := 0.0 // the part of it that comes back
	if part < cost {
		back = 1 - part/cost
	}
	switch i, known := h.queue.index(slot.Number); {
	case known && i >= h.queue.granted && kept == 0:
		l.drop(i, cost*(h.worth.owed/slot.worth.owed))
	case known && i >= h.queue.granted:
		l.shorten(i, worth, back)
	default:
		most := h.headrooms.least(slot.Number)
		if h.large != nil && slot.Number == h.large[0].number { // the bucket would have held less for less
			large := h.large[0]
			need := 0.0
			if kept > 0 {
				need = float64(large.amount) - (cost-part)*(large.worth.granted/slot.worth.granted)
			}
			most = min(most, max(0, roundDown((float64(large.span)-need)*(h.worth.granted/large.worth.granted))))
		}
		l.repay(slot.Number, worth*back, most)
	}
	if permits := scaleStore(taken-used, slot.curve, l.curve); permits > 0 {
		l.store(permits)
	}
	l.rescheduled(now)
}

// drop removes a waiting request. The next pays what a change of the rate stretched.
func (l *Ledger) drop(i int, cost float64) {
	q := &l.history.queue
	amount := q.entries[i].amount
	if rounded := cost - float64(amount); math.Abs(rounded) < 1 {
		l.early += rounded
	}
	q.leave(i, max(0, amount-1-roundUp(cost)))
}

func (l *Ledger) shorten(i int, worth, back float64) {
	q := &l.history.queue
	amount := q.entries[i].amount
	refund := float64(min(worth, float64(amount))*back) + l.early
	less := max(0, min(amount, roundDown(refund)))
	q.add(i, -less)
	l.carry(refund, less)
}

// carry keeps a refund's rest of less than a nanosecond.
func (l *Ledger) carry(refund float64, rounded int64) {
	l.early = min(refund-float64(rounded), max(l.early, 1))
}

func (l *Ledger) repay(number uint64, refund float64, most int64) {
	refund += l.early
	time := max(0, roundDown(refund))
	if time <= most {
		l.carry(refund, time)
	} else {
		time = most
	}
	l.empty -= time
	l.history.headrooms.subtract(number, time)
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
