package calendar

import "github.com/nextfree/pace/smooth"

// inUse marks slots in use. A server may count a call at the edge of a period in either, so both count it.
const inUse = 1 << 63

func (l *ledger) Begin(now int64, slot smooth.Slot) smooth.Slot {
	l.advance(now)
	if slot.Number >= inUse || len(l.queue) > 0 && slot.Number >= l.queue[0].number {
		return slot
	}
	l.out += int64(slot.Permits)
	slot.Number |= inUse
	return slot
}

// End: a period that the slot opened ends its length from now.
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
