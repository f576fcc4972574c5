package reserve

import (
	"time"

	"github.com/nextfree/pace/smooth"
)

// An Untouched is what a limiter of a policy is like at a moment if it was made at
// a time before and nobody has asked it since. A keeper of very many limiters
// makes them from it, and need not keep those that are like it: nobody can tell
// whether they were, since a later Untouched says what they would have become.
type Untouched struct {
	policy     *Policy
	begin, now int64
	stored     float64
	rate       float64
}

// Untouched returns what a limiter of this policy, made at begin, is like now.
func (p *Policy) Untouched(begin time.Time) Untouched {
	now := p.now()
	u := Untouched{policy: p, begin: min(p.since(begin), now), now: now}
	if t := p.terms; t != nil {
		l := smooth.New(t.Curve, u.begin, t.Stored, t.Upfront)
		u.stored, u.rate = l.Stored(now), l.Rate()
		return u
	}
	l := p.variant.Ledger(u.begin)
	u.stored, u.rate = l.Stored(now), l.Rate()
	return u
}

// Epoch returns when the policy was made. Own says that this is on a clock of its
// own, [WithClock].
func (p *Policy) Epoch() (t time.Time, own bool) { return p.epoch, p.fake != nil }

// Seed returns the limiter as a [Seed], or false if it can't be one because its
// ledger is not smooth's (a window's, for one).
func (u *Untouched) Seed() (Seed, bool) {
	t := u.policy.terms
	if t == nil {
		return Seed{}, false
	}
	return Seed{state: smooth.New(t.Curve, u.begin, t.Stored, t.Upfront).State()}, true
}

// Limiter returns the limiter as a [Limiter].
func (u *Untouched) Limiter() *Limiter {
	return u.policy.newLimiter(u.begin)
}

// IsSeed reports whether the seed, of the same policy, is like it: nothing owed,
// and as much stored.
func (u *Untouched) IsSeed(s *Seed) bool {
	l := s.ledger(u.policy)
	return l.Idle(u.now) && l.Stored(u.now) == u.stored
}

// IsLimiter reports whether the limiter, of the same policy, is like it: nothing
// owed or promised, no pause, the policy's rate, and as much stored.
func (u *Untouched) IsLimiter(l *Limiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return u.is(l)
}

// Retire makes an end of a limiter if [Untouched.IsLimiter], and reports whether it
// did. Permits that reservations give back later are then of no use to anybody (the
// store was full without it); what was used beyond them is told to charge, which
// is called under the limiter's lock.
func (u *Untouched) Retire(l *Limiter, charge func(permits int)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !u.is(l) {
		return false
	}
	l.ledger = retired{l.ledger, charge}
	return true
}

// is is IsLimiter of a limiter that is locked.
func (u *Untouched) is(l *Limiter) bool {
	now := l.read(u.now)
	ledger, ok := l.ledger.(idle)
	// Idle first: it is quick, and what Stored takes may grow with the queue.
	return ok && ledger.Idle(now) && l.ledger.Rate() == u.rate && l.ledger.Stored(now) == u.stored
}

// idle is what a ledger must have, too, for its limiters ever to be like an Untouched:
// Idle reports whether nothing that it has sold is still to come, or to be paid for.
type idle interface{ Idle(now int64) bool }

// Charge takes n permits (for less than 1 it does nothing) that have been used already: the next caller
// waits for them, as for what [Reservation.Settle] charges.
func (l *Limiter) Charge(n int) {
	if n < 1 {
		return
	}
	now := l.lock()
	defer l.mu.Unlock()
	l.ledger.Charge(now, n)
}

// retired is the ledger of a limiter whose place another one may have taken.
type retired struct {
	Ledger
	charge func(permits int)
}

func (r retired) Charge(_ int64, permits int) { r.charge(permits) }
