package keyed

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/hooks"
	"github.com/nextfree/pace/smooth"
)

// engine is how this package uses the inside of policies and limiters.
var engine = hooks.Open[*reserve.Policy, *reserve.Limiter, *reserve.Reservation]()

// A compact is a limiter that is still compact: it has made no reservation that may come back, is not
// paused, and has its policy's rate. It is 24 bytes, where a [reserve.Limiter] is some 200, and
// most keys never need more. It can take permits that are to be had now; for all else it grows into a
// Limiter. It does not remember its policy, which must be the same each time.
type compact struct{ state smooth.State }

// ledger returns its ledger, which remembers nothing.
func (s *compact) ledger(t *hooks.Terms) smooth.Ledger { return s.state.Ledger(t.Curve, t.Upfront) }

// tryAcquire is [reserve.Limiter.TryAcquire].
func (s *compact) tryAcquire(p *reserve.Policy, n int) bool {
	if n < 1 {
		return false
	}
	t := engine.Terms(p)
	l := s.ledger(t)
	if !l.Take(t.Now(), n) {
		return false // and it is as before, to the bit
	}
	s.state = l.State()
	return true
}

// acquire is [reserve.Limiter.Acquire] where that need not wait. Where it would have to, it
// takes nothing and returns false: a caller that waits may give up, and a compact limiter can take
// nothing back. It also returns the reading of the clock.
func (s *compact) acquire(ctx context.Context, p *reserve.Policy, n int) (now int64, taken bool, err error) {
	t := engine.Terms(p)
	now = t.Now()
	if n >= 1 && done.Cause(ctx) == nil && t.Deadline(ctx) >= now {
		if l := s.ledger(t); l.Take(now, n) {
			s.state = l.State()
			return now, true, nil
		}
	}
	return now, false, engine.Check(ctx, p, &s.state, n, reserve.Forever)
}

// wait returns how long a request for n permits (at least 1) would wait.
func (s *compact) wait(p *reserve.Policy, n int) time.Duration {
	t := engine.Terms(p)
	now, l := t.Now(), s.ledger(t)
	return max(0, time.Duration(saturate.Add(l.Look(now, n), -now)))
}

// charge takes n permits (at least 1) that have been used already.
func (s *compact) charge(p *reserve.Policy, n int) {
	t := engine.Terms(p)
	l := s.ledger(t)
	l.Charge(t.Now(), n)
	s.state = l.State()
}

// outlook returns what it has to give now, and outlookAt what it has at a reading of the clock.
func (s *compact) outlook(p *reserve.Policy) hooks.Outlook {
	return s.outlookAt(p, engine.Terms(p).Now())
}

func (s *compact) outlookAt(p *reserve.Policy, now int64) (o hooks.Outlook) {
	t := engine.Terms(p)
	l := s.ledger(t)
	o.Rate, o.Wait = l.Rate(), max(0, time.Duration(saturate.Add(l.NextFree(now), -now)))
	if t.Curve.Free() {
		o.Capacity, o.Stored = t.Curve.Capacity, l.Stored(now)
	}
	return o
}

// promote returns the limiter that it has become. It must not be used any more.
func (s *compact) promote(p *reserve.Policy) *reserve.Limiter {
	t := engine.Terms(p)
	return engine.Grow(p, t.Now(), s.ledger(t))
}

// A untouched is what a policy's limiter is like now if nobody has ever asked it. So a key that is like it
// need not be remembered: nobody can tell whether it was, since a later one says what it would have
// become.
type untouched struct {
	hooks.Fresh
	terms *hooks.Terms
	begin int64
}

// untouched returns what the limiter of a key with that policy is like if nobody has asked it.
func (k *Limiters[K]) untouched(p *reserve.Policy) untouched {
	t := engine.Terms(p)
	begin := k.beginOf(t)
	return untouched{engine.Fresh(p, begin, t.Now()), t, begin}
}

// beginOf returns when the limiters of policies with those terms began, on their clock.
func (k *Limiters[K]) beginOf(t *hooks.Terms) int64 {
	begin := t.Since(k.since(t))
	if t.Fake != nil { // which may have been set back
		begin = min(begin, t.Now())
	}
	return begin
}

// untouchedCompact returns an untouched limiter as a compact one, or false if it can't be one because
// its ledger is not smooth's (a window's, for one).
func untouchedCompact(t *hooks.Terms, begin int64) (compact, bool) {
	if t.Curve == nil {
		return compact{}, false
	}
	return compact{smooth.New(t.Curve, begin, t.Stored, t.Upfront).State()}, true
}

// is reports whether an entry is like it.
func (f *untouched) is(limiter *reserve.Limiter, s *compact) bool {
	if limiter != nil {
		return engine.Like(limiter, f.Fresh)
	}
	l := s.ledger(f.terms)
	return l.Idle(f.Now) && l.Stored(f.Now) == f.Stored
}
