package calendar

import (
	"iter"
	"math"
)

func (l *ledger) Behind(now int64, ahead iter.Seq[int], permits int) int64 {
	l.advance(now)
	s := l.placed()
	if ahead != nil {
		for n := range ahead {
			s = l.after(s, int64(n), never)
		}
	}
	return l.toLimiter(l.after(s, int64(permits), never).at)
}

// Forecast is too early with Spread above 1, as if all requests of a period went at the pace of the first, and for
// FromFirst with a margin, whose periods begin ever later.
func (l *ledger) Forecast(now int64, n int) int64 {
	l.advance(now)
	s := l.after(l.placed(), 1, never)
	for rest := int64(n) - 1; rest > 0; {
		k := rest
		if left := l.quota - s.used; left > 0 {
			k = min(rest, left) // they fill the period
		}
		if k > 1 {
			s = l.after(s, k-1, never)
		}
		s = l.after(s, 1, never)
		rest -= k
	}
	return l.toLimiter(s.at)
}

func (l *ledger) TakeUpTo(now int64, n int) (taken int) {
	if !math.IsInf(l.spread, 1) { // the next one is not granted at once
		for taken < n && l.Take(now, 1) {
			taken++
		}
		return taken
	}
	l.advance(now)
	n = int(min(int64(n), l.quota-l.state.used))
	if n < 1 || !l.Take(now, n) {
		return 0
	}
	return n
}
