package bykey

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/smooth"
)

// compact is a limiter without reservations or a pause, at its policy's rate: 24 bytes instead of some 200. It can take
// permits that are available now. For all else it grows to a whole limiter.
type compact struct{ state smooth.State }

func newCompact(t *engine.Terms, begin int64) compact {
	return compact{smooth.New(t.Curve, begin, t.Stored, t.Upfront).State()}
}

func (c *compact) ledger(t *engine.Terms) smooth.Ledger { return c.state.Ledger(t.Curve, t.Upfront) }

func (c *compact) grow(p *engine.Policy) *engine.Limiter {
	t := p.Terms()
	return p.Grow(t.Now(), c.ledger(t))
}

func (c *compact) tryAcquire(p *engine.Policy, n int) bool {
	if n < 1 {
		return false
	}
	t := p.Terms()
	l := c.ledger(t)
	if !l.Take(t.Now(), n) {
		return false // and it is as before, to the bit
	}
	c.state = l.State()
	return true
}

// take takes permits that are available now; it can't take them back, so a caller that has to wait gets none. The error
// is that of a request that no wait helps.
func (c *compact) take(ctx context.Context, p *engine.Policy, n int) (now int64, had bool, err error) {
	t := p.Terms()
	now = t.Now()
	if n >= 1 && done.Cause(ctx) == nil && t.Deadline(ctx) >= now {
		if l := c.ledger(t); l.Take(now, n) {
			c.state = l.State()
			return now, true, nil
		}
	}
	return now, false, p.Check(ctx, &c.state, n, reserve.Forever)
}

func (c *compact) wait(p *engine.Policy, n int) time.Duration {
	t := p.Terms()
	now, l := t.Now(), c.ledger(t)
	return max(0, time.Duration(saturate.Add(l.Behind(now, nil, n), -now)))
}

func (c *compact) charge(p *engine.Policy, n int) {
	t := p.Terms()
	l := c.ledger(t)
	l.Charge(t.Now(), n)
	c.state = l.State()
}

func (c *compact) outlook(p *engine.Policy, now int64) (o engine.Outlook) {
	t := p.Terms()
	l := c.ledger(t)
	o.Rate, o.MaxWait = l.Rate(), t.MaxWait
	o.Wait = max(0, time.Duration(saturate.Add(l.NextFree(now), -now)))
	if t.Curve.Free() {
		o.Capacity, o.Stored = t.Curve.Capacity, l.Stored(now)
	}
	return o
}

// untouched is the state now of a limiter that was never asked: a key in it need not be remembered.
type untouched struct {
	engine.Fresh
	terms *engine.Terms
	begin int64
}

func (k *Limiters[K]) untouched(p *engine.Policy) untouched {
	t := p.Terms()
	begin := k.beginOf(t)
	return untouched{p.Fresh(begin, t.Now()), t, begin}
}

// beginOf returns when the limiters of such policies began, on their clock.
func (k *Limiters[K]) beginOf(t *engine.Terms) int64 {
	begin := t.Since(k.since(t))
	if t.Fake != nil { // which may have been set back
		begin = min(begin, t.Now())
	}
	return begin
}

// since returns when the limiters of such policies begin.
func (k *Limiters[K]) since(t *engine.Terms) time.Time {
	if t.Fake == nil {
		return k.begin
	}
	if begin := k.ownBegin.Load(); begin != nil {
		return *begin
	}
	first := t.Epoch
	k.ownBegin.CompareAndSwap(nil, &first)
	return *k.ownBegin.Load()
}

func (f *untouched) is(s *state) bool {
	if s.whole != nil {
		return s.whole.Like(f.Fresh)
	}
	l := s.compact.ledger(f.terms)
	return l.Idle(f.Now) && l.Stored(f.Now) == f.Stored
}
