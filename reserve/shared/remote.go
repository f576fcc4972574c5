package shared

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// A remote is a Limiter as a limit. What it tells without a call is what the last answer said.
type remote struct {
	limit.Mute
	*limiter
}

// limiter has the methods of a Limiter that a limit's don't replace.
type limiter = Limiter

var _ = limit.For(func(l *Limiter) limit.Limit { return remote{limiter: l} })

func (r remote) Take(ctx context.Context, n int, maxWait time.Duration, _ bool) (t limit.Taken, err error) {
	return r.take(ctx, n, maxWait)
}

func (l *Limiter) take(ctx context.Context, n int, maxWait time.Duration) (t limit.Taken, err error) {
	asked := buys(n, int64(maxWait), never)
	p, err := l.reserve(ctx, asked)
	if err != nil {
		return
	}
	t.Reservation = reserve.NewReservation(p)
	if _, here := p.(*localGrant); !here && l.stock.most == 0 { // after is no answer to what was bought ahead
		t.Left = l.outlook()
		t.Left.Stored, t.Left.Wait = asked.after.left, time.Duration(asked.after.wait)
	}
	return
}

func (l *Limiter) outlook() engine.Outlook {
	o := l.terms.Load().outlook(l.maxWait)
	o.Wait = time.Duration(max(0, l.due.Load()-l.now()))
	return o
}

func (t *terms) outlook(maxWait time.Duration) engine.Outlook {
	o := engine.Outlook{Rate: t.curve.Rate, MaxWait: maxWait, Window: t.other != nil}
	if t.other != nil || t.curve.Free() {
		o.Capacity = t.curve.Capacity
	}
	return o
}

func (r remote) Peek(n int) (time.Duration, error) { return 0, r.check(n) }
func (r remote) Outlook() (engine.Outlook, bool)   { return r.outlook(), true }
func (r remote) Rate() float64                     { return r.limiter.Rate() }
func (r remote) Name() string                      { return r.name }
func (r remote) Stop(t time.Time)                  { r.stop(t) }
func (r remote) Traits() limit.Traits              { return distant }

var distant = limit.Traits{Blocks: true, Distant: true, Silent: true}

// stop stops the limiter for all processes. If the store does not answer, it is this process's alone: see outbound.
func (l *Limiter) stop(t time.Time) {
	until := l.now() + int64(time.Until(t))
	for {
		last := l.stopped.Load()
		if until <= last+int64(time.Millisecond) { // the clocks' readings differ
			return
		}
		if l.stopped.CompareAndSwap(last, until) {
			_ = l.pauseUntil(context.Background(), t, true)
			return
		}
	}
}

type forKey struct {
	limit.Mute
	limiters *Keyed
	key      string
}

var _ limit.Limit = forKey{}

func (f forKey) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	return f.limiters.ReserveWithin(ctx, f.key, n, maxWait)
}

func (f forKey) Take(ctx context.Context, n int, maxWait time.Duration, _ bool) (limit.Taken, error) {
	return use(f.limiters, f.key, func(l *Limiter) (limit.Taken, error) { return l.take(ctx, n, maxWait) })
}

func (f forKey) Outlook() (engine.Outlook, bool) {
	return f.limiters.terms.outlook(f.limiters.maxWait), true
}

func (f forKey) Rate() float64 { return f.limiters.terms.curve.Rate }

func (f forKey) Name() string { return f.limiters.limitName }

func (f forKey) Stop(t time.Time) {
	_, _ = use(f.limiters, f.key, func(l *Limiter) (struct{}, error) { l.stop(t); return struct{}{}, nil })
}

func (f forKey) Traits() limit.Traits { return distant }
