package smooth

import "math"

// Pause stops the bucket until a time: nothing is granted or saved up, and later promises move. It reports whether
// anything changed.
func (l *Ledger) Pause(now, until int64) bool {
	l.advance(now)
	// At most 255 years, and what is owed can move: an early end must lose nothing.
	origin := l.origin(now)
	by := min(min(until, 7<<60)-origin, math.MaxInt64-max(l.empty, 0)-l.owed())
	if until <= origin || by <= 0 {
		return false
	}
	l.record().until = origin + by
	l.empty += by
	return true
}

func (l *Ledger) Paused() int64 {
	if l.history == nil {
		return math.MinInt64
	}
	return l.history.until
}

func (l *Ledger) Resume(now int64) bool {
	until := l.Paused()
	if until <= now {
		return false
	}
	l.empty = addSaturating(l.empty, now-until)
	l.history.until, l.history.moved = now, now
	l.advance(now)
	return true
}
