package calendar

import "github.com/nextfree/pace/smooth"

type item struct {
	number  uint64
	permits int64
}

// Return knows requests that wait, were granted in this period, or took a part of it.
func (l *ledger) Return(now int64, slot smooth.Slot, kept int) {
	l.advance(now)
	back := int64(slot.Permits - kept)
	if slot.Number >= inUse { // it is over
		slot.Number &^= inUse
		l.out -= int64(slot.Permits)
	}
	if len(l.queue) > 0 && slot.Number >= l.queue[0].number {
		l.leave(l.find(slot.Number), back)
		l.advance(now) // at this time, whenever the next call is
		return
	}
	of := find(l.over, slot.Number)
	if slot.Number <= l.boundary {
		if of = find(l.owed, slot.Number); of == nil {
			return // its period is over
		}
		back = min(back, of.permits)
	}
	if of != nil {
		of.permits -= back
	}
	l.state.used = max(0, l.state.used-back)
	switch {
	case l.state.used == 0 && l.period.kind == fromFirst: // it was not opened
		l.state = state{span: closed, paced: l.state.begin, at: l.state.at}
	case slot.Number == l.last && kept == 0:
		l.state.paced = l.undo
	}
	l.known = 0
	l.advance(now)
}

func (l *ledger) leave(i int, back int64) {
	l.queue[i].permits -= back
	if l.known = min(l.known, i); l.queue[i].permits > 0 {
		return
	}
	l.empty++
	n := len(l.queue)
	for n > 0 && l.queue[n-1].permits == 0 {
		n--
		l.empty--
	}
	if l.queue = l.queue[:n]; 2*l.empty <= n {
		l.known = min(l.known, n)
		return
	}
	waiting := l.queue[:0]
	for _, r := range l.queue {
		if r.permits > 0 {
			waiting = append(waiting, r)
		}
	}
	l.queue, l.empty, l.known = waiting, 0, 0
}

func (l *ledger) find(number uint64) int {
	low, high := 0, len(l.queue)-1
	for low < high {
		if mid := int(uint(low+high) >> 1); l.queue[mid].number < number {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func find(items []item, number uint64) *item {
	for i := range items {
		if items[i].number == number {
			return &items[i]
		}
	}
	return nil
}
