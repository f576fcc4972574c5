package smooth

import (
	"iter"
	"math"
	"sort"
)

func (l *Ledger) Size() (capacity float64, largest int) { return l.curve.Capacity, math.MaxInt }

// AtOnce returns how many permits may be ready without a wait, however long nobody asks. Paid later, that is any
// number.
func (l *Ledger) AtOnce() int {
	if !l.upfront {
		return math.MaxInt
	}
	return l.curve.AtOnce(l.stored)
}

func (l *Ledger) NextFree(now int64) int64 { return l.behind(now, 0, 1) }

// Promised returns when the last request that waits is granted; false: none waits.
func (l *Ledger) Promised(now int64) (last int64, waits bool) {
	if l.advance(now); !l.waits {
		return 0, false
	}
	q := &l.history.queue
	of := q.entries[len(q.entries)-1]
	return l.promised(q.owed-of.amount, of.amount, of.number), true
}

// Forecast returns when the last of n requests for one permit would be ready, each made when the one before is granted.
func (l *Ledger) Forecast(now int64, n int) int64 { return l.behind(now, float64(n-1), 1) }

// Behind returns when a request for permits (at least 1) would be ready behind requests of the sizes ahead (each at
// least 1; nil: none). Only their sum matters. At 1/s with an empty store, paid later, behind 3 and 5 permits, it is 8
// s from now.
func (l *Ledger) Behind(now int64, ahead iter.Seq[int], permits int) int64 {
	if ahead == nil {
		return l.behind(now, 0, float64(permits))
	}
	before := 0.0 // in a branch of its own, since it is allocated
	for n := range ahead {
		before += float64(n)
	}
	return l.behind(now, before, float64(permits))
}

func (l *Ledger) behind(now int64, before, permits float64) int64 {
	l.advance(now)
	first := int64(0)
	if before > 0 {
		_, first, _ = l.price(before)
	}
	_, all, _ := l.price(min(before+permits, math.MaxFloat64))
	return max(now, l.promised(l.owed()+first, all-first, math.MaxUint64))
}

// TakeUpTo takes as many of n permits as would be granted now one by one, and returns how many. At 1/s with 5.5 stored
// it takes 6 of 10 (the last is prepaid), and upfront 5.
func (l *Ledger) TakeUpTo(now int64, n int) int {
	if l.advance(now); l.waits || l.origin(now) > now {
		return 0
	}
	ahead := int64(0)
	if l.upfront {
		ahead = l.curve.Ahead()
	}
	taken := sort.Search(max(0, n), func(before int) bool {
		permits := float64(before)
		if l.upfront {
			permits++
		}
		_, amount, _ := l.price(permits)
		return l.level(now)+ahead < amount
	})
	if taken > 0 && l.Take(now, taken) {
		return taken
	}
	return 0
}
