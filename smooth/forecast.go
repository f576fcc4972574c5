package smooth

import (
	"iter"
	"math"
)

// Behind returns when a request for permits (at least 1) would be ready if requests of the sizes
// ahead (each at least 1; nil: none) were made now, before it. It takes nothing. Only the sum of the
// sizes matters: what k permits cost does not depend on how requests divide them.
//
// At 1/s with an empty store, behind 3 and 5 permits, a request is ready 8 s from now.
func (l *Ledger) Behind(now int64, ahead iter.Seq[int], permits int) int64 {
	before := 0.0
	if ahead != nil {
		for n := range ahead {
			before += float64(n)
		}
	}
	if before == 0 {
		return l.Look(now, permits)
	}
	l.advance(now)
	_, first, _ := l.amount(before)
	_, all, _ := l.amount(min(before+float64(permits), math.MaxFloat64))
	if ready := l.promise(later(l.owed(), first), all-first); ready > now || l.waiting() {
		return ready
	}
	return now
}

// TakeUpTo takes as many of permits as would be granted now to requests for one permit, made one by
// one, and returns how many. At 1/s with 5.5 stored, of 10 it takes 6 (the last one is prepaid), and
// upfront 5.
func (l *Ledger) TakeUpTo(now int64, permits int) (taken int) {
	for chunk := permits; taken < permits; {
		chunk = min(chunk, permits-taken)
		// Whatever costs no time is granted together as it is one by one.
		if chunk > 1 && l.costsTime(now, chunk) {
			chunk = (chunk + 1) / 2
			continue
		}
		if !l.Take(now, chunk) {
			break
		}
		taken += chunk
	}
	return taken
}

// costsTime reports whether permits, taken now, would make a later request wait.
func (l *Ledger) costsTime(now int64, permits int) bool {
	l.advance(now)
	if l.waiting() || now < l.next {
		return true
	}
	stored, carry := l.flowed(now)
	_, length, _ := l.price(stored, float64(permits), carry)
	return length > 0
}
