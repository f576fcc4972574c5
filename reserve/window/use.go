package window

import "github.com/nextfree/pace/internal/smooth"

// A server counts a call somewhere between its sending and its answer. So permits in use count until per after their
// End: from Begin on they are in out instead of the log, and from End on in the log, as of then.

// Slots in use have the number inUse, and then wasInUse and the time of their End.
const (
	inUse    = 1 << 63
	wasInUse = inUse | 1<<62
)

func (l *ledger) Begin(now int64, slot smooth.Slot) smooth.Slot {
	if l.margin > 0 || slot.Number >= inUse || slot.Permits == 0 || l.Waits(now, slot.Number) {
		return slot
	}
	l.withdraw(slot.Number, int64(slot.Permits))
	l.out += int64(slot.Permits)
	l.Release()
	slot.Number = inUse
	return slot
}

func (l *ledger) End(now int64, slot smooth.Slot) smooth.Slot {
	l.Advance(now)
	if slot = l.Begin(now, slot); slot.Number != inUse {
		return slot
	}
	l.out -= int64(slot.Permits)
	l.Grant(l.last, 0, state{at: l.Now, sum: l.Present().sum + uint64(slot.Permits)})
	l.Unplace()
	slot.Number = wasInUse | uint64(l.Now)&(1<<62-1)
	return slot
}
