package engine

import "time"

// An Outlook says what a limiter can grant at one moment.
type Outlook struct {
	Rate float64 // fresh permits per second
	// Capacity is the largest number of permits that can be stored and used at once, and Stored is how many
	// are stored. Both are 0 for a warming-up limiter, whose stored permits can't be used at once.
	Capacity, Stored float64
	Wait             time.Duration // until a request for one permit would be granted
	MaxWait          time.Duration // that callers are promised; 0: it is not known
	// Window: the limiter grants at most Capacity in any Capacity/Rate seconds. No permits flow in on top of
	// Stored.
	Window bool
}

// Outlook returns what the limiter can grant now. It takes nothing, and does not allocate unless the rate was changed.
func (l *Limiter) Outlook() Outlook {
	now := l.lock()
	defer l.mu.Unlock()
	return l.outlookAt(now)
}

// Latest is the outlook as of the latest request, for the caller that has just made it. Reading the clock again would
// cost more than everything else.
func (l *Limiter) Latest() Outlook {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outlookAt(l.seen)
}

// outlookAt returns the outlook at a time. The limiter must be locked.
func (l *Limiter) outlookAt(now int64) (o Outlook) {
	o.Rate, o.Wait, o.MaxWait = l.ledger.Rate(), l.waitAt(now), l.cold.policy.terms.MaxWait
	curve := l.cold.policy.terms.Curve
	if curve == nil || curve.Free() {
		o.Capacity, o.Stored = l.capacity(), l.ledger.Stored(now)
	}
	o.Window = curve == nil && o.Capacity > 0
	return o
}
