package window

import "github.com/nextfree/pace/smooth"

// A server counts a call somewhere between its sending and its answer. So permits in use count until per after their
// End. From Begin on they are in out instead of the ring, and from End on in ended, in the order of End.

type use struct {
	number  uint64
	permits uint64
	at      int64 // when it was over, on the window's clock
}

type uses struct {
	out    sum    // in use
	now    int64  // they are in use at this time
	ended  []use  // by time and by number
	first  int    // ended[first:] are in the stretch that was looked at last
	held   sum    // the permits of ended[first:]
	number uint64 // of the newest
}

// Slots whose use began, or is over, have numbers apart from the ring's.
const (
	inUse    = 1 << 63
	wasInUse = inUse | 1<<62
)

func (l *ledger) Begin(now int64, slot smooth.Slot) smooth.Slot {
	if l.margin > 0 || slot.Number >= inUse || slot.Permits == 0 || l.Waits(now, slot.Number) {
		return slot
	}
	permits := uint64(slot.Permits)
	if i := l.ring.find(slot.Number); slot.Number > l.forgot && i < l.ring.length {
		l.remove(i, permits)
	}
	l.uses.out.add(permits)
	l.unplace(l.granted)
	slot.Number = inUse
	return slot
}

func (l *ledger) End(now int64, slot smooth.Slot) smooth.Slot {
	l.advance(now)
	if slot = l.Begin(now, slot); slot.Number != inUse {
		return slot
	}
	u, permits := &l.uses, uint64(slot.Permits)
	u.out.sub(permits)
	u.number++
	u.ended = append(u.ended, use{u.number, permits, l.floor})
	u.held.add(permits)
	l.unplace(l.granted)
	slot.Number = wasInUse | u.number
	return slot
}

func (u *uses) back(slot smooth.Slot, permits uint64) {
	if slot.Number == inUse {
		u.out.sub(permits)
		return
	}
	low, high := 0, len(u.ended)
	for number := slot.Number &^ wasInUse; low < high; {
		if mid := (low + high) / 2; u.ended[mid].number < number {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(u.ended) || u.ended[low].number != slot.Number&^wasInUse {
		return // it has left the window
	}
	u.ended[low].permits -= permits
	if low >= u.first {
		u.held.sub(permits)
	}
}

func (u *uses) seek(before int64) {
	for u.first < len(u.ended) && u.ended[u.first].at <= before {
		u.held.sub(u.ended[u.first].permits)
		u.first++
	}
	for u.first > 0 && u.ended[u.first-1].at > before {
		u.first--
		u.held.add(u.ended[u.first].permits)
	}
}

// forget drops permits that have left the window, once they are half.
func (u *uses) forget(before int64) {
	n := 0
	for n < len(u.ended) && u.ended[n].at <= before {
		n++
	}
	if n == 0 || 2*n < len(u.ended) {
		return
	}
	u.seek(before)
	u.ended, u.first = append(u.ended[:0], u.ended[n:]...), u.first-n
}
