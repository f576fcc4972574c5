package calendar

// Pause lets the periods go on.
func (l *ledger) Pause(now, until int64) bool {
	l.advance(now)
	if until <= max(now, l.stopped) {
		return false
	}
	l.stopped, l.known = until, 0
	return true
}

func (l *ledger) Stop(now, until int64) bool { return l.Pause(now, until) }

func (l *ledger) Paused() int64 { return l.stopped }

func (l *ledger) Resume(now int64) bool {
	if l.stopped <= now {
		return false
	}
	l.stopped, l.known = now, 0
	l.advance(now)
	return true
}
