package calendar

import "github.com/nextfree/pace/smooth"

// The other side counts a call somewhere between its sending and its answer. So a call that is out at the edge of a
// period may be counted in either, and both count it: see [reserve.Reservation.Begin].

// inUse marks the numbers of slots that are in use. Their periods count them as they count others.
const inUse = 1 << 63

// Begin says that the use of a granted slot begins, and returns the slot by which it is known from then on.
func (l *ledger) Begin(now int64, slot smooth.Slot) smooth.Slot {
	l.advance(now)
	if slot.Number >= inUse || len(l.queue) > 0 && slot.Number >= l.queue[0].number {
		return slot
	}
	l.out += int64(slot.Permits)
	slot.Number |= inUse
	return slot
}

// End says that the use of a slot is over. A period that opened with it ends its length from now.
func (l *ledger) End(now int64, slot smooth.Slot) smooth.Slot {
	l.advance(now)
	if slot.Number < inUse {
		return slot
	}
	slot.Number &^= inUse
	l.out -= int64(slot.Permits)
	if l.period.kind == fromFirst && slot.Number == l.opener && l.state.end != l.said && l.now < l.state.end {
		l.state.end = l.now + int64(l.period.length)
	}
	l.known = 0 // a period to come begins with less
	return slot
}
