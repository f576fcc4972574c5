package smooth

import "math"

// Return takes back all permits of a slot but the first kept ones (fewer than it has).
//
// If its request waits, the amount in the queue gets less, and the requests behind it go earlier. If
// it has gone, as much comes back as the bucket would still hold if it had never been taken: no
// more than fits now, or would have fitted at any time since. Either way, requests that wait go as
// soon as they may.
func (l *Ledger) Return(now int64, slot Slot, kept int) {
	l.advance(now)
	b := l.book
	permits, cost, back := l.worth(slot, kept)
	b.changed(now)
	switch i := b.queue.index(slot.Number); {
	case i > b.queue.gone:
		l.leave(i, back, kept)
	case slot.Number <= b.lost:
		return
	default:
		l.comeBack(now, slot.Number, cost, back)
	}
	l.stored = min(l.stored+permits, max(l.stored, l.curve.Capacity))
	l.fill(now)
	l.letGo(now)
}

// comeBack puts time back into the bucket that a request has taken when it went.
func (l *Ledger) comeBack(now int64, number uint64, cost, back float64) {
	switch b := l.book; {
	case l.curve.Free() || number != l.number:
		if span := l.curve.span(l.curve.Capacity); l.upfront && cost > span { // it held more because this one waited
			back = min(back, max(0, span-(cost-back)))
		}
		back = min(back, l.room(now), b.rooms.least(number))
		b.rooms.takeOff(number, back)
	case l.next <= l.origin(now): // its time is over
		return
	}
	l.shift(-back)
}

// worth returns the cost of a slot at today's rate, and what all its permits but the first kept ones
// are worth: the time, and where stored permits have a price, those that go back to the store.
func (l *Ledger) worth(slot Slot, kept int) (permits, cost, back float64) {
	permits, cost = slot.curve.sold(slot.stored, float64(slot.Permits))
	back = cost
	if kept > 0 {
		still, used := slot.curve.sold(slot.stored, float64(kept))
		permits, back = permits-still, cost-used
	}
	if l.curve.unlimited() {
		permits = 0
	}
	by := l.curve.worth() / slot.curve.worth()
	return rescale(permits, slot.curve, l.curve), float64(cost * by), float64(back * by)
}

// leave takes time off the amount of a request that waits. Amounts are whole nanoseconds; the part
// by which this one differs from its cost goes to the carry.
func (l *Ledger) leave(i int, back float64, kept int) {
	q := &l.book.queue
	less := q.amount(i)
	if kept > 0 {
		n, _ := whole(back)
		less = min(less, n)
	} else {
		q.note(i, left)
	}
	q.reduce(i, less)
	l.book.skip()
	part := float64(less) - back
	if math.Abs(part) < 2 { // else time had ended
		l.carry += part
	}
	if l.carry < 0 {
		l.next, l.carry = shift(l.next, l.carry)
	}
}

// fill brings the bucket back to its rules after something was given back: time by which next is
// ahead of now is stored, and the excess flows over.
func (l *Ledger) fill(now int64) {
	origin := l.origin(now)
	if !l.upfront || !l.waiting() {
		if over := origin - l.next; over > 0 {
			l.stored = min(l.stored+float64(float64(over)*l.curve.Refill), max(l.stored, l.curve.Capacity))
			l.next = origin
		}
		return
	}
	if q := &l.book.queue; origin > l.next {
		limit := l.limit(q.amount(q.head()), q.time(q.head()), now)
		if over := l.saved() + float64(origin-l.next) - limit; over > 0 {
			l.shift(min(over, float64(origin-l.next)))
		}
	}
}
