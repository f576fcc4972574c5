package smooth

import (
	"slices"
	"sort"
)

// An entry says how many permits came back that slots had taken from the store. It
// stands for one slot, or for several that were sold one after another.
type entry struct {
	first, last uint64 // their numbers
	permits     float64
}

// maxReturns bounds the memory of a limiter, to 24 KiB for this. So many callers,
// and more if they are neighbours, may give back what they were granted at one
// moment, in any order, without any loss.
const maxReturns = 1024

// returnLate takes back permits whose time has come: those from the store, and those
// that the time was worth. Had they never been sold, they would have filled the
// store and others would have spilled, or they themselves; so no more come back
// than would be there for certain.
func (l *Ledger) returnLate(now int64, slot *Slot, stored, earned float64) {
	if !l.sameEra(slot) {
		return
	}
	since := l.inflow
	for _, e := range l.back.returns {
		if e.first > slot.number { // in the store when this slot was sold, so they did not come in since
			since -= e.permits
		}
	}
	permits := min(stored+earned, rescale(slot.room, slot.curve, l.curve)-since)
	switch {
	case !(permits > 0):
	case now < l.next:
		l.setAside(slot, permits, stored)
	default:
		l.cameBack(slot, permits, stored)
		l.stored = min(l.stored+permits, l.curve.Capacity)
	}
}

// setAside keeps a slot's permits until the debt is paid, and returns how many
// fitted. So many of them had been taken from the store.
func (l *Ledger) setAside(slot *Slot, permits, stored float64) float64 {
	l.cameBack(slot, permits, stored)
	fit := min(permits, l.vacant())
	l.back.aside += fit
	return fit
}

// vacant returns how many permits still fit into the store.
func (l *Ledger) vacant() float64 {
	if l.curve.unlimited() {
		return 0
	}
	vacant := l.curve.Capacity - l.stored
	if l.back != nil {
		vacant -= l.back.aside
	}
	return max(0, vacant)
}

// cameBack counts permits that came back from a slot; so many of them had been
// taken from the store.
func (l *Ledger) cameBack(slot *Slot, permits, stored float64) {
	l.inflow += permits
	if stored = min(stored, permits); stored <= 0 {
		return
	}
	l.back.remember(slot.number, stored)
}

// remember notes the permits that came back from a slot. Without that they count as
// coming in for the slots sold before it, too, of which less comes back then: safe,
// but a loss. If there are too many, the oldest slots are forgotten.
func (b *back) remember(number uint64, permits float64) {
	i := sort.Search(len(b.returns), func(i int) bool { return b.returns[i].first > number })
	behind := i < len(b.returns) && b.returns[i].first == number+1
	if i > 0 && b.returns[i-1].last+1 == number { // join the one in front
		e := &b.returns[i-1]
		e.last = number
		e.permits += permits
		if behind { // and the one behind
			e.last = b.returns[i].last
			e.permits += b.returns[i].permits
			b.returns = slices.Delete(b.returns, i, i+1)
		}
		return
	}
	if behind {
		b.returns[i].first = number
		b.returns[i].permits += permits
		return
	}
	if len(b.returns) == maxReturns {
		if i == 0 {
			return
		}
		b.returns = slices.Delete(b.returns, 0, 1)
		i--
	}
	b.returns = slices.Insert(b.returns, i, entry{number, number, permits})
}
