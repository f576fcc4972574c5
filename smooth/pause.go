package smooth

import "math"

// Pause stops the bucket until a time: no request is granted before, nothing is saved up, and all later
// promises move by as much. It reports false if that changes nothing.
func (l *Ledger) Pause(now, until int64) bool {
	l.advance(now)
	// At most 255 years, and no longer than what is owed can move, so that nothing is lost when the
	// pause is ended early.
	origin := l.origin(now)
	by := math.MaxInt64 - max(l.next, 0) - l.owed()
	if until = min(until, 7<<60); until <= origin || by <= 0 {
		return false
	}
	by = min(by, until-origin)
	l.record().until = origin + by
	l.shift(by)
	return true
}

// Paused returns the end of the latest pause.
func (l *Ledger) Paused() int64 {
	if l.history == nil {
		return math.MinInt64
	}
	return l.history.until
}

// Resume ends a pause now, and reports whether there was one.
func (l *Ledger) Resume(now int64) bool {
	until := l.Paused()
	if until <= now {
		return false
	}
	l.history.until = now
	l.shift(now - until)
	l.advance(now)
	return true
}

// shift moves all that is to come.
func (l *Ledger) shift(by int64) {
	l.next = addSaturating(l.next, by)
	l.history.paused += by
	l.rescheduled(l.history.headSince)
}

// rescheduled is called when waiting requests may have other times than were promised.
func (l *Ledger) rescheduled(now int64) {
	h := l.history
	h.headSince, h.nextGrant = max(h.headSince, now), math.MinInt64
	if l.waits {
		h.queue.noteAll()
	}
}

// origin returns the time from which on the bucket fills: now, or the end of a pause.
func (l *Ledger) origin(now int64) int64 {
	if l.history == nil {
		return now
	}
	return max(now, l.history.until)
}

// bucketTime turns a time into the bucket's, whose clock stands still during pauses.
func (l *Ledger) bucketTime(now int64) int64 { return l.origin(now) - l.history.paused }
