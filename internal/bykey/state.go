package bykey

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

// A state is what is remembered of a key's limiter. Without reservations or a pause, at its policy's rate, it is
// compact: 24 bytes instead of 200. All but available permits and a charge make it whole.
type state struct {
	policy  *engine.Policy
	compact smooth.State
	whole   *engine.Limiter // nil: it is compact
}

func newState(p *engine.Policy, begin int64) state {
	if t := p.Terms(); t.Curve != nil {
		return state{policy: p, compact: smooth.New(t.Curve, begin, t.Stored, t.Upfront).State()}
	}
	return state{policy: p, whole: p.New(begin)}
}

func (s *state) ledger() (l smooth.Ledger, t *engine.Terms) {
	t = s.policy.Terms()
	return s.compact.Ledger(t.Curve, t.Upfront), t
}

// limiter makes the state whole. Copied returns what limiter would, and changes nothing.
func (s *state) limiter() *engine.Limiter {
	s.whole = s.copied()
	return s.whole
}

func (s *state) copied() *engine.Limiter {
	if s.whole != nil {
		return s.whole
	}
	l, t := s.ledger()
	return s.policy.With(t.Now(), &l)
}

func (s *state) tryAcquire(n int) bool {
	if s.whole != nil {
		return s.whole.TryAcquire(n)
	}
	if n < 1 {
		return false
	}
	l, t := s.ledger()
	return s.keep(&l, l.Take(t.Now(), n)) // otherwise it is as before, to the bit
}

func (s *state) keep(l *smooth.Ledger, changed bool) bool {
	if changed {
		s.compact = l.State()
	}
	return changed
}

func (s *state) take(ctx context.Context, n int) bool {
	if s.whole != nil {
		var r engine.Reservation
		return s.whole.Reserve(ctx, n, 0, &r) == nil
	}
	if n < 1 || done.Cause(ctx) != nil {
		return false
	}
	l, t := s.ledger()
	now := t.Now()
	return t.Deadline(ctx) >= now && s.keep(&l, l.Take(now, n))
}

func (s *state) reserve(ctx context.Context, n int, maxWait time.Duration) (r reserve.Reservation, err error) {
	if s.whole == nil && n >= 1 && done.Cause(ctx) == nil {
		l, t := s.ledger()
		now, deadline := t.Now(), t.Deadline(ctx)
		if err = s.policy.Refuse(&l, n, now, l.Behind(now, nil, n), maxWait, deadline); err != nil {
			return
		}
	}
	whole := s.copied()
	if r, err = (*reserve.Limiter)(whole).ReserveWithin(ctx, n, maxWait); err == nil {
		s.whole = whole
	}
	return
}

func (s *state) peek(n int) (time.Duration, error) {
	if s.whole != nil {
		return (*reserve.Limiter)(s.whole).Peek(n)
	}
	l, t := s.ledger()
	now := t.Now()
	return max(0, time.Duration(saturate.Add(l.Behind(now, nil, n), -now))), nil
}

func (s *state) outlook() (o engine.Outlook) {
	if s.whole != nil {
		return s.whole.Outlook()
	}
	l, t := s.ledger()
	now := t.Now()
	o.Rate, o.MaxWait = l.Rate(), t.MaxWait
	o.Wait = max(0, time.Duration(saturate.Add(l.NextFree(now), -now)))
	if t.Curve.Free() {
		o.Capacity, o.Stored = t.Curve.Capacity, l.Stored(now)
	}
	return o
}

func (s *state) charge(n int) {
	if s.whole != nil {
		s.whole.Charge(n)
		return
	}
	l, t := s.ledger()
	l.Charge(t.Now(), n)
	s.compact = l.State()
}

// A fresh is the state, at a moment, of a limiter that was never asked: a key in it need not be remembered.
type fresh struct {
	now          int64
	rate, stored float64
}

func (k *Limiters[K]) untouched(p *engine.Policy) fresh {
	t := p.Terms()
	l := p.Ledger(k.beginOf(t), t.Time)
	now := t.Now()
	return fresh{now: now, rate: l.Rate(), stored: l.Stored(now)}
}

// beginOf returns when the policies' limiters began, on their clock.
func (k *Limiters[K]) beginOf(t *engine.Terms) int64 {
	begin := t.Since(k.since(t))
	if t.Fake != nil { // which may have been set back
		begin = min(begin, t.Now())
	}
	return begin
}

func (k *Limiters[K]) since(t *engine.Terms) time.Time {
	if t.Fake == nil {
		return k.begin
	}
	if k.ownBegin.Load() == nil {
		first := t.Epoch
		k.ownBegin.CompareAndSwap(nil, &first)
	}
	return *k.ownBegin.Load()
}
