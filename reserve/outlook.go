package reserve

import "time"

// An Outlook says what a limiter has to give at one moment. By the time of the next
// request it may no longer be true.
type Outlook struct {
	Rate     float64       // fresh permits per second
	Capacity float64       // the largest number of permits that can be saved up and used at once
	Stored   float64       // how many of those there are
	Wait     time.Duration // until a request for one permit would be granted
	Window   bool          // no stretch of Capacity/Rate seconds holds more than Capacity: nothing flows in on top of Stored
}

// Outlook returns what the limiter has to give now. It takes nothing and does not
// allocate, unless the rate has been changed. The stored permits of a warming-up
// limiter are not for use at once, so there Capacity and Stored are 0.
//
// A limiter at 10/s with 4 stored permits has Rate 10, Capacity 10, Stored 4, Wait 0.
func (l *Limiter) Outlook() Outlook {
	now := l.lock()
	defer l.mu.Unlock()
	return l.outlook(now)
}

// outlook returns what the limiter, which must be locked, has to give.
func (l *Limiter) outlook(now int64) (o Outlook) {
	o.Rate = l.ledger.Rate()
	o.Stored = l.ledger.Stored(now)
	o.Wait = time.Duration(max(0, add(l.ledger.NextFree(now), -now)))
	terms := l.policy.terms
	if terms == nil {
		if w, ok := l.ledger.(bounded); ok {
			o.Capacity, o.Window = float64(w.Max()), true
		}
		return o
	}
	curve := terms.Curve
	if curve.Rate != o.Rate {
		curve = curve.AtRate(o.Rate)
	}
	o.Capacity = curve.Capacity
	if !curve.Free() {
		o.Capacity, o.Stored = 0, 0
	}
	return o
}

// Outlook is [Limiter.Outlook].
func (s *Seed) Outlook(p *Policy) (o Outlook) {
	now := p.now()
	l := s.ledger(p)
	o.Rate, o.Stored, o.Capacity = l.Rate(), l.Stored(now), p.terms.Curve.Capacity
	o.Wait = time.Duration(max(0, l.NextFree(now)-now))
	if !p.terms.Curve.Free() {
		o.Capacity, o.Stored = 0, 0
	}
	return o
}

// Outlook returns what the limiter that made the reservation had to give after the
// latest request it got: for whoever has just reserved, and needs no newer reading of
// the clock, which costs more than all the rest. It returns false if that is not known: of
// the zero Reservation, and of one that stands for a [Promise] without a method like this.
func (r *Reservation) Outlook() (Outlook, bool) {
	if r.promise != nil {
		if p, ok := (*r.promise).(interface{ Outlook() (Outlook, bool) }); ok {
			return p.Outlook()
		}
		return Outlook{}, false
	}
	l := r.limiter
	if l == nil {
		return Outlook{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outlook(l.seen), true
}
