package engine

import "time"

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

func (l *Limiter) Snapshot() Snapshot {
	now := l.lock()
	defer l.mu.Unlock()
	l.counting.Store(true)
	s := Snapshot{
		Rate: l.ledger.Rate(), Capacity: l.capacity(), Level: l.ledger.Level(now), Wait: l.waitAt(now),
		Granted: l.granted, Refused: l.cold.refused.Load(), GivenBack: l.cold.givenBack,
	}
	if end := l.ledger.Paused(); end > now {
		s.PausedUntil = l.clock.Time(end)
	}
	if all := l.cold.sleepers; all != nil {
		s.Waiting, s.Waited = all.waiting(), all.waited
	}
	return s
}

// Used returns how many permits are missing from the capacity, without those for which callers wait.
func (l *Limiter) Used() float64 {
	now := l.lock()
	defer l.mu.Unlock()
	used := l.capacity() - l.ledger.Level(now)
	if all := l.cold.sleepers; all != nil {
		used -= float64(all.permits)
	}
	return used
}

func (l *Limiter) waitAt(now int64) time.Duration { return max(0, until(l.ledger.NextFree(now), now)) }

func (l *Limiter) capacity() float64 {
	capacity, _ := l.ledger.Size()
	return capacity
}
