package engine

import (
	"iter"
	"time"
)

// A Moment is a reading of a clock, made before a lock was taken. A limiter with another clock reads its own.
type Moment struct {
	Clock *Clock
	Now   int64
}

func (l *Limiter) reads(m Moment) int64 {
	if l.clock.Same(m.Clock) {
		return m.Now + int64(m.Clock.Epoch.Sub(l.clock.Epoch))
	}
	return l.clock.Now()
}

// DelayAt is Delay. A Promise is asked for its present delay.
func (r *Reservation) DelayAt(m Moment) time.Duration {
	l := r.limiter
	if r.promise != nil || l == nil {
		return r.Delay()
	}
	now := l.lockFor(l.reads(m))
	defer l.mu.Unlock()
	return max(0, until(r.at(now), now))
}

func (r *Reservation) TimeAt(m Moment) int64 {
	l := r.limiter
	t := l.reads(m)
	now := l.lockFor(t)
	defer l.mu.Unlock()
	return m.Now + r.at(now) - t
}

func (l *Limiter) BehindAt(m Moment, ahead iter.Seq[int], n int) (wait time.Duration, err error) {
	return l.behind(l.reads(m), ahead, n)
}

func (l *Limiter) ForecastAt(m Moment, n int) time.Duration {
	now := l.lockFor(l.reads(m))
	defer l.mu.Unlock()
	return max(0, until(l.ledger.Forecast(now, max(1, n)), now))
}
