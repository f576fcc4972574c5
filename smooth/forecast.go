package smooth

import (
	"iter"
	"math"
)

// NextFree returns when a request for one permit, made now, would be ready.
func (l *Ledger) NextFree(now int64) int64 { return l.behind(now, 0, 1) }

// Look returns when a request, made now, would be ready. It takes nothing.
func (l *Ledger) Look(now int64, permits int) int64 { return l.behind(now, 0, float64(permits)) }

// Behind returns when a request for permits (at least 1) would be ready if requests of the sizes
// ahead (each at least 1; nil: none) were made now, before it. It takes nothing. Only the sum of the
// sizes matters: what k permits cost does not depend on how requests divide them.
//
// At 1/s with an empty store, paid later, behind 3 and 5 permits, a request is ready 8 s from now.
func (l *Ledger) Behind(now int64, ahead iter.Seq[int], permits int) int64 {
	before := 0.0
	if ahead != nil { // apart, so that nothing is allocated if there are none
		before = sum(ahead)
	}
	return l.behind(now, before, float64(permits))
}

func sum(sizes iter.Seq[int]) (all float64) {
	for n := range sizes {
		all += float64(n)
	}
	return all
}

func (l *Ledger) behind(now int64, before, permits float64) int64 {
	l.advance(now)
	all := l.ask(now, min(before+permits, math.MaxFloat64))
	first := int64(0)
	if before > 0 {
		first = l.ask(now, before).amount
	}
	return max(now, l.promise(all.next, addSaturating(l.owed(), first), all.amount-first))
}

// TakeUpTo takes as many of n permits as would be granted now to requests for one permit, made one by
// one, and returns how many. At 1/s with 5.5 stored, of 10 it takes 6 (the last one is prepaid), and
// upfront 5.
func (l *Ledger) TakeUpTo(now int64, n int) (taken int) {
	if l.advance(now); l.waits || now < l.next {
		return 0
	}
	c := l.curve
	if !c.Free() && !c.unlimited() { // the first one that costs time is the last
		for taken < n && l.Take(now, 1) {
			taken++
		}
		return taken
	}
	if !c.unlimited() {
		time, prepaid := l.early+epsilon, 0.0
		if !l.upfront {
			prepaid = 1 // by the next one
			if c.Interval < 1 {
				time = l.early + 1 - epsilon
			}
		}
		ready := math.Floor(l.stored+time/c.Interval) + prepaid
		n = int(min(float64(n), ready))
	}
	if n < 1 || !l.Take(now, n) {
		return 0
	}
	return n
}
