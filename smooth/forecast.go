package smooth

import (
	"iter"
	"math"
	"sort"
)

// NextFree returns when a request for one permit, made now, would be ready.
func (l *Ledger) NextFree(now int64) int64 { return l.Behind(now, nil, 1) }

// Behind returns when a request for permits (at least 1) would be ready if requests of the sizes
// ahead (each at least 1; nil: none) were made now, before it. It takes nothing. Only the sum of the
// sizes matters: what k permits cost does not depend on how requests divide them.
//
// At 1/s with an empty store, paid later, behind 3 and 5 permits, a request is ready 8 s from now.
func (l *Ledger) Behind(now int64, ahead iter.Seq[int], permits int) int64 {
	l.advance(now)
	before, first := 0.0, int64(0)
	if ahead != nil {
		before = sum(ahead)
		_, first, _ = l.price(before)
	}
	_, all, _ := l.price(min(before+float64(permits), math.MaxFloat64))
	return max(now, l.promise(addSaturating(l.owed(), first), all-first))
}

func sum(sizes iter.Seq[int]) (all float64) {
	for n := range sizes {
		all += float64(n)
	}
	return all
}

// TakeUpTo takes as many of n permits as would be granted now to requests for one permit, made one by
// one, and returns how many. At 1/s with 5.5 stored, of 10 it takes 6 (the last one is prepaid), and
// upfront 5.
func (l *Ledger) TakeUpTo(now int64, n int) (taken int) {
	if l.advance(now); l.waits || l.origin(now) > now {
		return 0
	}
	own := 0
	if l.upfront {
		own = 1
	}
	taken = sort.Search(max(0, n), func(before int) bool {
		_, amount, _ := l.price(float64(before) + float64(own))
		return l.level(now) < amount
	})
	if taken < 1 || !l.Take(now, taken) {
		return 0
	}
	return taken
}
