package calendar

import "github.com/nextfree/pace/internal/smooth"

type item struct {
	number  uint64
	permits int64
}

// Refund knows requests that were granted in this period, or took a part of it.
func (l *ledger) Refund(slot smooth.Slot, kept int) {
	back := int64(slot.Permits - kept)
	if slot.Number >= inUse { // it is over
		slot.Number &^= inUse
		l.out -= int64(slot.Permits)
	}
	if kept == 0 && l.called(slot.Number) != nil {
		l.Keep() // the period may end later without it
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
	l.state.used, l.state.beyond = max(0, l.state.used-back), max(0, l.state.beyond-back)
	switch {
	case l.state.used == 0 && l.period.kind == fromFirst: // it was not opened
		l.state = state{span: closed, at: l.state.at, pacing: pacing{paced: l.state.begin}}
	case slot.Number == l.last && kept == 0:
		l.state.pacing = l.undo
		fallthrough
	case kept == 0:
		l.gone(slot.Number)
	case slot.Number == l.last:
		l.state.paid = min(l.state.paid, int64(kept))
	}
	if l.state.paid > 0 { // there is more left for the rest of the period
		l.state.paced = min(l.state.paced, l.repaced(l.state))
	}
}

func find(items []item, number uint64) *item {
	for i := range items {
		if items[i].number == number {
			return &items[i]
		}
	}
	return nil
}
