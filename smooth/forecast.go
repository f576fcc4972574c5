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
