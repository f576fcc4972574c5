package reserve

import "time"

// A Snapshot is a limiter's state at one moment, and counts since the limiter was made. By the time of the
// next request the state may have changed.
//
// The number of permits that are used, or promised, is Granted - GivenBack. Counts start again at 0 after 1<<64 - 1.
type Snapshot struct {
	Rate     float64 // fresh permits per second; +Inf: no limit
	Capacity float64 // the largest number of permits that can be stored; of a window, how many it allows
	// Level is the number of stored permits, or the number that a window has room for. While permits are
	// owed it is negative: minus the fresh permits that must come first, for granted and for waiting
	// requests.
	Level       float64
	Wait        time.Duration // until a request for one permit, made now, would be granted
	PausedUntil time.Time     // the end of the pause; the zero time if there is none

	// Granted is the number of permits that were promised, and of permits that [Reservation.Settle] charged
	// beyond that.
	Granted uint64
	// Refused is the number of permits in requests that were refused: by TryAcquire, or with a
	// *[WaitError] or a *[SizeError]. See [Limiter.Snapshot].
	Refused uint64
	// GivenBack is the number of permits that came back: by Cancel, by Settle for less, or from callers
	// that gave up while they waited.
	GivenBack uint64

	Waiting int           // callers that wait now, in Acquire or in Wait of a reservation
	Waited  time.Duration // the sum of the waits that are over, of callers that went and that gave up
}

// Snapshot returns the limiter's state and counts, for logs and metrics. It takes no permits. It holds the
// limiter's lock for about as long as a request does; for a window, for one pass over the requests in it.
//
// A limiter at 10/s that stores up to 10 and had 10 stored, after TryAcquire(6): Rate 10, Capacity 10,
// Level 4, Wait 0, Granted 6. After another TryAcquire(9): Level -5, Wait 500 ms, Granted 15.
//
// Until the first Snapshot, a TryAcquire that fails without the limiter's lock is not counted in Refused. So it writes
// nothing, and is as fast from many goroutines as from one. If you need that count, call Snapshot once at the start.
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
