package window

import "github.com/nextfree/pace/smooth"

// The other side counts a call somewhere between its sending and its answer. Permits in use therefore count until per
// after their use is over: see [reserve.Reservation.Begin]. From Begin on they are not in the ring but in out, and from
// End on in ended, at the time of End. So both rings are in the order of their times.

// A use is permits whose use is over.
type use struct {
	number  uint64
	permits uint64
	at      int64 // when it was over, on the window's clock
}

// uses holds the permits that are in use, or were within the last per.
type uses struct {
	out    sum    // in use
	now    int64  // they are in use at this time
	ended  []use  // by time and by number
	first  int    // ended[first:] are in the stretch that was looked at last
	held   sum    // the permits of ended[first:]
	number uint64 // of the newest
}

// The numbers of slots that are in use, and of those whose use is over, are apart from the ring's.
const (
	inUse    = 1 << 63
	wasInUse = inUse | 1<<62
)

// Begin says that the use of a granted slot begins, and returns the slot by which it is known from then on.
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

// End says that the use of a slot is over, which may have left the window since.
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

// back takes permits of a slot in use, or that was in use, out of the window.
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

// seek looks at the stretch after a time.
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

// forget drops permits that have left the window for good, once they are half of all.
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
