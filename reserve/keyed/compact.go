package keyed

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/smooth"
)

// compact is the state of a limiter that has made no reservation, is not paused, and has its policy's rate. It takes 24
// bytes, where a [reserve.Limiter] takes some 200. Most keys never need more. It can take permits that are available
// now. For all else it is promoted to a Limiter. Its methods need its policy, which it does not remember.
type compact struct{ state smooth.State }

// ledger returns its ledger, which remembers nothing.
func (s *compact) ledger(t *engine.Terms) smooth.Ledger { return s.state.Ledger(t.Curve, t.Upfront) }

// tryAcquire is [reserve.Limiter.TryAcquire].
func (s *compact) tryAcquire(p *reserve.Policy, n int) bool {
	if n < 1 {
		return false
	}
	t := (*engine.Policy)(p).Terms()
	l := s.ledger(t)
	if !l.Take(t.Now(), n) {
		return false // and it is as before, to the bit
	}
	s.state = l.State()
	return true
}

// acquire takes permits that are available now, and returns the reading of the clock. Otherwise it
// takes nothing: a caller that waits may give up, and a compact limiter can't take permits back. The
// error is that of a request that would be refused however long it waits.
func (s *compact) acquire(ctx context.Context, p *reserve.Policy, n int) (now int64, taken bool, err error) {
	t := (*engine.Policy)(p).Terms()
	now = t.Now()
	if n >= 1 && done.Cause(ctx) == nil && t.Deadline(ctx) >= now {
		if l := s.ledger(t); l.Take(now, n) {
			s.state = l.State()
			return now, true, nil
		}
	}
	return now, false, (*engine.Policy)(p).Check(ctx, &s.state, n, reserve.Forever)
}

// wait returns how long a request for n permits (at least 1) would wait.
func (s *compact) wait(p *reserve.Policy, n int) time.Duration {
	t := (*engine.Policy)(p).Terms()
	now, l := t.Now(), s.ledger(t)
	return max(0, time.Duration(saturate.Add(l.Look(now, n), -now)))
}

// charge takes n permits (at least 1) that have been used already.
func (s *compact) charge(p *reserve.Policy, n int) {
	t := (*engine.Policy)(p).Terms()
	l := s.ledger(t)
	l.Charge(t.Now(), n)
	s.state = l.State()
}

// outlook returns what it has to give now, and outlookAt what it has at a reading of the clock.
func (s *compact) outlook(p *reserve.Policy) engine.Outlook {
	return s.outlookAt(p, (*engine.Policy)(p).Terms().Now())
}

func (s *compact) outlookAt(p *reserve.Policy, now int64) (o engine.Outlook) {
	t := (*engine.Policy)(p).Terms()
	l := s.ledger(t)
	o.Rate, o.MaxWait = l.Rate(), t.MaxWait
	o.Wait = max(0, time.Duration(saturate.Add(l.NextFree(now), -now)))
	if t.Curve.Free() {
		o.Capacity, o.Stored = t.Curve.Capacity, l.Stored(now)
	}
	return o
}

// promote returns the Limiter with that state, which takes its place.
func (s *compact) promote(p *reserve.Policy) *reserve.Limiter {
	t := (*engine.Policy)(p).Terms()
	return (*reserve.Limiter)((*engine.Policy)(p).Grow(t.Now(), s.ledger(t)))
}

// untouched is the present state of a limiter that was never asked. A key in that state need not be
// remembered: the state can be computed again whenever the key is asked.
type untouched struct {
	engine.Fresh
	terms *engine.Terms
	begin int64
}

// untouched returns that state for a policy.
func (k *Limiters[K]) untouched(p *reserve.Policy) untouched {
	t := (*engine.Policy)(p).Terms()
	begin := k.beginOf(t)
	return untouched{(*engine.Policy)(p).Fresh(begin, t.Now()), t, begin}
}

// beginOf returns when the limiters of policies with those terms began, on their clock.
func (k *Limiters[K]) beginOf(t *engine.Terms) int64 {
	begin := t.Since(k.since(t))
	if t.Fake != nil { // which may have been set back
		begin = min(begin, t.Now())
	}
	return begin
}

// untouchedCompact returns an untouched limiter as a compact one. It returns false if the ledger is not smooth's (a
// window's, for one).
func untouchedCompact(t *engine.Terms, begin int64) (compact, bool) {
	if t.Curve == nil {
		return compact{}, false
	}
	return compact{smooth.New(t.Curve, begin, t.Stored, t.Upfront).State()}, true
}

// is reports whether an entry is in that state.
func (f *untouched) is(limiter *reserve.Limiter, s *compact) bool {
	if limiter != nil {
		return (*engine.Limiter)(limiter).Like(f.Fresh)
	}
	l := s.ledger(f.terms)
	return l.Idle(f.Now) && l.Stored(f.Now) == f.Stored
}
