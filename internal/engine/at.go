package engine

import "time"

// Limiters at times that the caller brings: see package attime.

// reading keeps the distances of callers' times, though the wall clock may be set.
func (l *Limiter) reading(at time.Time) int64 { return l.clock.reading(at) }

func (l *Limiter) TakeAt(at time.Time, n int) bool { return l.take(l.reading(at), n) }

// ReserveAt is Reserve at a time, into a new r.
func (l *Limiter) ReserveAt(at time.Time, n int, maxWait time.Duration, r *Reservation) error {
	now := l.lockFor(l.reading(at))
	defer l.mu.Unlock()
	return l.promise(now, n, maxWait, never, r)
}

func (r *Reservation) SettleAt(at time.Time, actual int) {
	now := r.limiter.lockFor(r.limiter.reading(at))
	defer r.limiter.mu.Unlock()
	r.limiter.settle(now, r, actual)
}

func (r *Reservation) ReadyAt(at time.Time) time.Time {
	t := r.limiter.reading(at)
	now := r.limiter.lockFor(t)
	defer r.limiter.mu.Unlock()
	return at.Add(time.Duration(r.at(now) - t))
}

func (l *Limiter) LevelAt(at time.Time) float64 { return ask(l, l.reading(at), Ledger.Level) }

// ReplaceAt is SetPolicy at a time, with Retime's waits.
func (l *Limiter) ReplaceAt(at time.Time, p *Policy) (want string) {
	return l.replace(l.reading(at), p, true)
}
