package engine

import "time"

// A Snapshot is reserve.Snapshot, which says what the fields mean.
type Snapshot struct {
	Rate        float64
	Capacity    float64
	Level       float64
	Wait        time.Duration
	PausedUntil time.Time
	Granted     uint64
	Refused     uint64
	GivenBack   uint64
	Waiting     int
	Waited      time.Duration
}

// Snapshot returns the state and the counts of the limiter.
func (l *Limiter) Snapshot() Snapshot {
	now := l.lock()
	defer l.mu.Unlock()
	l.counting.Store(true)
	s := Snapshot{
		Rate: l.ledger.Rate(), Capacity: l.capacity(), Level: l.level(now), Wait: l.waitAt(now),
		Granted: l.granted, Refused: l.cold.refused.Load(), GivenBack: l.cold.givenBack,
	}
	if p, ok := l.ledger.(pausing); ok && p.Paused() > now {
		s.PausedUntil = l.clock.Time(p.Paused())
	}
	if all := l.cold.sleepers; all != nil {
		s.Waiting, s.Waited = len(all.list)-all.head-all.left, all.waited
	}
	return s
}

// waitAt returns how long a request for one permit would wait. The limiter must be locked.
func (l *Limiter) waitAt(now int64) time.Duration { return max(0, until(l.ledger.NextFree(now), now)) }

// capacity returns the largest number of permits that the limiter can store, or 0 if it is unknown. The
// limiter must be locked.
func (l *Limiter) capacity() float64 {
	switch curve := l.cold.policy.terms.Curve; {
	case curve == nil:
		switch b := l.ledger.(type) {
		case bounded:
			return float64(b.Max())
		case interface{ Capacity() float64 }:
			return b.Capacity()
		}
		return 0
	case curve.Rate != l.ledger.Rate():
		return curve.AtRate(l.ledger.Rate()).Capacity
	default:
		return curve.Capacity
	}
}

func (l *Limiter) level(now int64) float64 {
	if b, ok := l.ledger.(leveled); ok {
		return b.Level(now)
	}
	return l.ledger.Stored(now)
}
