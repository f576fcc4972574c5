package smooth

import (
	"math"
	"slices"
	"sort"
)

// What is given back goes where nobody who holds a promise is touched by it:
//
//   - The newest slot is undone, as if it had never been sold.
//   - A stretch at the end of the queue makes the queue shorter, and with it fall the
//     stretches for sale that then touch the end.
//   - A stretch further to the front, its time still to come, is for sale, and what
//     it took from the store is set aside.
//   - Time that passes unsold is set aside as the permits that it would have stored.
//   - Of a slot whose time has come, as many permits are set aside as would not
//     have been spilled had they never left the store.
//
// What is aside joins the store when the debt is paid, and not before: it was
// earned over a time in which others were already promised all that was fresh, so
// spending it within the queue would let more than the rate through.
type back struct {
	aside   float64    // permits
	offers  []stretch  // for sale, in order, none touching the next one or the end of the queue
	loans   []loan     // in order: of the permits aside, what belongs to the queue
	returns []entry    // the permits that came back, by the slots' numbers
	rates   []pastRate // the latest rates before today's, the oldest first
	known   int64      // from when on they are known
}

// A loan says how many of the permits aside go back into the store if the queue is
// cut off there or before: then all is as it was when they were taken.
type loan struct {
	at      int64
	permits float64
}

// Return takes back the last permits of a slot: no more than it has, and no permit
// twice. Due says that the time of the slot has come, so that it can't be sold
// again. (It is for the caller to say: when its clock stands still, slots from
// before and from after it stopped are ready at the same time.)
func (l *Ledger) Return(now int64, slot Slot, permits int, due bool) {
	l.givenBack()
	all := permits == slot.Permits
	newest := slot.number == l.slots && (all || !l.upfront)
	freed, stored, fresh := l.undo(&slot, float64(permits))
	inDebt := now < l.next
	if newest && all {
		if inDebt || freed.end == l.next { // else the carry is another one
			l.uncarry(&slot)
		}
		l.slots--
	}
	switch {
	case freed.end == l.next && (newest || inDebt):
		if !newest { // the newer ones had a store without it
			l.cameBack(&slot, stored, stored)
		}
		l.stored = min(l.stored+stored, l.curve.Capacity)
		l.cutOff(freed.begin)
	case inDebt && newest:
		l.stored = min(l.stored+stored, l.curve.Capacity)
		l.back.aside = min(l.back.aside, l.curve.Capacity-l.stored)
		l.offer(now, freed)
	case inDebt && !due:
		l.lend(freed.begin, l.setAside(&slot, stored, stored))
		l.offer(now, freed)
	default:
		l.advance(now)
		earned := l.worth(freed)
		if !newest {
			earned = min(earned, rescale(fresh, slot.curve, l.curve))
		}
		l.returnLate(now, &slot, stored, earned)
	}
}

// givenBack returns the memory for it, which most limiters never need.
func (l *Ledger) givenBack() *back {
	if l.back == nil {
		l.back = &back{known: math.MinInt64}
	}
	return l.back
}

// undo returns what permits of a slot had bought: a stretch of time; and how many came
// out of the store, in terms of today's, and how many did not, in terms of the slot's.
//
// Of a slot that goes before it pays, those are the last permits, and the end of
// its stretch. Of one that pays upfront, they are the first ones: its own time is
// promised at its end, and if it kept what it took from the store and gave back the
// time, a second store would fill meanwhile and both be used at once.
func (l *Ledger) undo(slot *Slot, permits float64) (freed stretch, stored, fresh float64) {
	all := float64(slot.Permits)
	taken, _ := slot.curve.price(slot.stored, all)
	begin, end := slot.Ready, slot.Ready+slot.length
	if l.upfront {
		begin, end = slot.Ready-slot.length, slot.Ready
	}
	switch {
	case permits == all:
		stored = taken
	case l.upfront:
		var cost float64
		stored, cost = slot.curve.price(slot.stored, permits)
		length, _ := whole(cost)
		end = begin + min(length, slot.length)
	default:
		kept, cost := slot.curve.price(slot.stored, all-permits)
		stored = taken - kept
		length, part := whole(cost)
		if part > 0 { // what is kept is paid in full
			length = later(length, 1)
		}
		begin += min(length, slot.length)
	}
	if !l.sameEra(slot) {
		return stretch{begin, end}, 0, 0
	}
	return stretch{begin, end}, rescale(stored, slot.curve, l.curve), permits - stored
}

// sameEra reports whether the permits of a slot have to do with today's store.
func (l *Ledger) sameEra(slot *Slot) bool {
	return slot.number/eraSlots == l.slots/eraSlots && !l.curve.unlimited()
}

// cutOff makes the queue end there, or where the stretches for sale before it begin.
func (l *Ledger) cutOff(end int64) {
	b := l.back
	l.next = end
	for i := len(b.offers) - 1; i >= 0 && b.offers[i].end == l.next; i-- {
		l.next = b.offers[i].begin
		b.offers = b.offers[:i]
	}
	for i := len(b.loans) - 1; i >= 0 && b.loans[i].at >= l.next; i-- {
		again := min(b.loans[i].permits, b.aside)
		b.aside -= again
		l.stored = min(l.stored+again, l.curve.Capacity)
		b.loans = b.loans[:i]
	}
	if changed := b.changed(); l.next < changed { // idle time stores what it did when it was
		earned := l.worth(stretch{l.next, changed})
		l.inflow += earned
		l.stored = min(l.stored+earned, l.curve.Capacity)
		l.next = changed
	}
}

// lend notes that permits aside belong to the queue there.
func (l *Ledger) lend(at int64, permits float64) {
	if permits > 0 {
		b := l.back
		i := sort.Search(len(b.loans), func(i int) bool { return b.loans[i].at > at })
		b.loans = slices.Insert(b.loans, i, loan{at, permits})
	}
}

// uncarry takes a slot's part of a nanosecond out of the carry.
func (l *Ledger) uncarry(slot *Slot) {
	_, cost := slot.curve.price(slot.stored, float64(slot.Permits))
	_, part := whole(cost)
	l.carry -= part
	if l.carry < -1e-6 { // beyond what rounding explains: that slot had filled a nanosecond
		l.carry++
	}
	l.carry = max(0, l.carry)
}
