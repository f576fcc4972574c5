package reserve

import "time"

// Rate returns the number of fresh permits per second.
func (l *Limiter) Rate() float64 { return l.engine().Rate() }

// Stored returns the number of permits that are stored now; 0 while permits are owed: see [Limiter.NextFree]. In a
// warming-up limiter they take time.
func (l *Limiter) Stored() float64 { return l.engine().Stored() }

// NextFree returns when a request for one permit, made now, would be granted.
func (l *Limiter) NextFree() time.Time { return l.engine().NextFree() }

// Peek returns how long a request for n permits (at least 1), made now, would wait, or a *[SizeError] if the limiter
// never grants as many. Another caller may change that. [WithMaxWait] does not apply.
//
// At 1/s, after Acquire(8), Peek(1) and Peek(100) return 8 s: a request does not wait for its own permits.
func (l *Limiter) Peek(n int) (wait time.Duration, err error) {
	if err := checkPermits(n); err != nil {
		return 0, err
	}
	return l.engine().Behind(nil, n)
}

// Forecast returns when the last of n requests for one permit would go, each made when the one before is granted: when
// n more items of work can have started. An n below 1 counts as 1.
//
// It is exact if no other caller asks and the rate stays. At 10/s with 10 stored, the last of 111 goes in 10 s.
func (l *Limiter) Forecast(n int) time.Time { return l.engine().Forecast(n) }

// A Snapshot is a limiter's state at one moment, and counts since the limiter was made.
//
// Granted - GivenBack permits are used or promised.
type Snapshot struct {
	Rate     float64 // fresh permits per second; +Inf: no limit
	Capacity float64 // the largest number of permits that can be stored; of a window, how many it allows
	// Level is the number of stored permits, or what a window has room for; negative while permits are owed: minus the
	// fresh permits that must come first.
	Level       float64
	Wait        time.Duration // until a request for one permit, made now, would be granted
	PausedUntil time.Time     // the end of the pause; the zero time if there is none

	// Granted counts permits that were promised, or charged beyond that by [Reservation.Settle].
	Granted uint64
	// Refused counts permits of refused requests: see [Limiter.Snapshot].
	Refused uint64
	// GivenBack counts permits that came back by Cancel, Settle, or callers that gave up.
	GivenBack uint64

	Waiting int           // callers that wait now, in Acquire or in Wait of a reservation
	Waited  time.Duration // the sum of the waits that are over, of callers that went and that gave up
}

// Snapshot returns the limiter's state and counts.
//
// At 10/s, with 10 stored, after TryAcquire(6) and TryAcquire(9), Level is -5, Wait 500 ms, and Granted 15.
//
// Until the first Snapshot, Refused does not count a TryAcquire that fails without the limiter's lock. For that count,
// call Snapshot once at the start.
func (l *Limiter) Snapshot() Snapshot { return Snapshot(l.engine().Snapshot()) }
