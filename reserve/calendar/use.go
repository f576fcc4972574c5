package calendar

import "github.com/nextfree/pace/smooth"

// inUse marks slots in use. A server may count a call at the edge of a period in either, so both count it.
const inUse = 1 << 63

func (l *ledger) Begin(now int64, slot smooth.Slot) smooth.Slot {
	if slot.Number >= inUse || l.Waits(now, slot.Number) {
		return slot
	}
	l.out += int64(slot.Permits)
	slot.Number |= inUse
	return slot
}

// End: a period that the slot opened ends its length from now.
func (l *ledger) End(now int64, slot smooth.Slot) smooth.Slot {
	l.Advance(now)
	if slot.Number < inUse {
		return slot
	}
	slot.Number &^= inUse
	l.out -= int64(slot.Permits)
	if l.period.kind == fromFirst && slot.Number == l.opener && l.state.end != l.said && l.Now < l.state.end {
		l.state.end = l.Now + int64(l.period.length)
	}
	l.Unplace() // a period to come begins with less
	return slot
}
