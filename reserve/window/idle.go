package window

// Idle reports whether nothing that was promised is still to come: then package keyed
// may drop a key's window, if no permit is held in it either.
func (l *ledger) Idle(now int64) bool {
	last := l.ring.length - 1
	return last < 0 || l.ring.time(last).at <= now
}
