package reserve

import (
	"time"
)

// Package attime's functions. A time before the latest that the limiter has seen counts as the latest.

// reading returns what the limiter's clock reads at a time. Times of a clock that has no monotonic part keep their
// distances to the nanosecond: they are not related to the present.
func (l *Limiter) reading(at time.Time) int64 { return int64(at.Sub(l.clock.Epoch)) }

// takeAt is TryAcquire at a time.
func (l *Limiter) takeAt(at time.Time, n int) bool { return l.take(l.reading(at), n) }

// reserveAt is ReserveWithin at a time, into r.
func (l *Limiter) reserveAt(at time.Time, n int, maxWait time.Duration, r *Reservation) error {
	if err := checkPermits(n); err != nil {
		return err
	}
	t := l.reading(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promise(l.read(t), n, maxWait, never, r)
}

// settleAt is Settle at a time, and readyAt is At.
func (r *Reservation) settleAt(at time.Time, actual int) {
	t := r.limiter.reading(at)
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	r.limiter.settle(r.limiter.read(t), r, actual)
}

func (r *Reservation) readyAt(at time.Time) time.Time {
	l := r.limiter
	t := l.reading(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	return at.Add(time.Duration(r.at(l.read(t)) - t))
}

// levelAt returns a snapshot's Level at a time. It is negative while anything is owed.
func (l *Limiter) levelAt(at time.Time) float64 {
	t := l.reading(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.level(l.read(t))
}

// replaceAt is SetPolicy at a time, but the waits of waiting requests scale with the rate, as with Retime.
func (l *Limiter) replaceAt(at time.Time, p *Policy) error {
	t := l.reading(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.read(t)
	if want := l.cold.policy.differs(p); want != "" {
		return valueError("Replace's policy", p, want)
	}
	if p.terms.Curve != nil {
		l.ledger.Retime(now, p.terms.Curve.Rate)
	}
	l.replace(now, p)
	l.cold.sleepers.giveUp(l, now)
	return nil
}
