package engine

import "time"

type Outlook struct {
	Rate float64 // fresh permits per second
	// Capacity is how many permits can be stored and used at once, and Stored how many are; 0 while warming up.
	Capacity, Stored float64
	Wait             time.Duration // until a request for one permit would be granted
	MaxWait          time.Duration // that callers are promised; 0: it is not known
	// Window: at most Capacity in any Capacity/Rate seconds, so nothing flows in on top of Stored.
	Window bool
}

// Version changes with each change of promised times, except by requests and by time that passes.
func (l *Limiter) Version() uint64 { return uint64(l.version.Load()) }

func (l *Limiter) Name() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cold.policy.terms.Name
}

func (l *Limiter) Outlook() Outlook { return l.outlook(l.clock.Now()) }

// Latest is the outlook as of the latest request: it does not read the clock.
func (l *Limiter) Latest() Outlook { return l.outlook(unknown) }

func (l *Limiter) outlook(t int64) (o Outlook) {
	now := l.lockFor(t)
	defer l.mu.Unlock()
	o.Rate, o.Wait, o.MaxWait = l.ledger.Rate(), l.waitAt(now), l.cold.policy.terms.MaxWait
	curve := l.cold.policy.terms.Curve
	if curve == nil || curve.Free() {
		o.Capacity, o.Stored = l.capacity(), l.ledger.Stored(now)
	}
	o.Window = curve == nil && o.Capacity > 0
	return o
}
