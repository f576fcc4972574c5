package smooth

import "math"

// Return takes back all permits of a slot but the first kept ones (fewer than it has).
//
// If its request waits, the amount in the queue gets less, and the requests behind it are granted
// earlier. If it was granted, as much comes back as the bucket would still hold if it had never been
// taken: no more than fits now, or would have fitted at any time since; of stored permits that have a price
// all, or none if the store has been full since. Either way, requests that wait are granted as soon as
// they may be.
func (l *Ledger) Return(now int64, slot Slot, kept int) {
	l.advance(now)
	l.flush()
	h := l.history
	l.rescheduled(now)
	taken, used := slot.curve.ask(slot.stored, float64(kept))
	all, cost := slot.curve.ask(slot.stored, float64(slot.Permits))
	permits, refund := scaleStore(all-taken, slot.curve, l.curve), cost-used
	switch i := h.queue.index(slot.Number); {
	case i > h.queue.granted && slot.Number > h.forfeited:
		l.leave(i, h.changes.refund(slot, refund, used, math.Inf(1)), kept == 0)
	case i > h.queue.granted: // its price is forgotten, but its place is not
		l.leave(i, float64(h.queue.amount(i))*(refund/cost), kept == 0)
	case slot.Number <= h.forfeited:
		return
	default:
		l.repay(now, slot, refund, used)
	}
	if !l.curve.unlimited() && slot.Number > h.full {
		l.stored = min(l.stored+permits, max(l.stored, l.curve.Capacity))
	}
	l.waits = l.skip()
	if over := l.level(now) - l.limit(now); l.waits && over > 2 { // but for what is rounded
		l.next, l.early = move(l.next, l.early, over)
	}
	if !l.waits || l.early >= 2 {
		l.next, l.early = move(l.next, l.early, 0)
	}
	l.grantWaiting(now)
}

// leave takes a refund off the amount of a waiting request. Amounts are whole nanoseconds; the part
// by which this one differs goes to early, and what is left of it is a charge.
func (l *Ledger) leave(i int, refund float64, all bool) {
	q := &l.history.queue
	less := min(q.amount(i), max(0, -roundUp(-refund-l.early)))
	q.reduce(i, less)
	if part := refund - float64(less); math.Abs(part) < 2 { // else time has ended
		l.early += part
	}
	if all {
		q.leave(i)
	}
}

// repay puts a refund of a granted request into the bucket, of which used is not refunded.
func (l *Ledger) repay(now int64, slot Slot, refund, used float64) {
	h := l.history
	newest := slot.Number == l.number && h.headrooms.since(slot.Number) == len(h.headrooms)
	if newest && !l.curve.Free() && l.next <= l.origin(now) {
		return // its time is over
	}
	refund = h.changes.refund(slot, refund, used, l.most())
	if l.curve.Free() || !newest {
		refund = min(refund, l.headroom(now), h.headrooms.least(slot.Number)*h.changes.scale)
		h.headrooms.subtract(slot.Number, refund/h.changes.scale)
	}
	l.next, l.early = move(l.next, l.early, -refund)
}

// most returns what the bucket could hold for a granted request if that had never waited. Paid upfront it may have held more.
func (l *Ledger) most() float64 {
	if l.upfront && l.curve.Free() && !l.curve.unlimited() {
		return l.curve.toTime(l.curve.Capacity)
	}
	return math.Inf(1)
}
