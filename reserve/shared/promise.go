package shared

import (
	"context"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/wake"
	"github.com/nextfree/pace/reserve"
)

// A promise is a reservation that the store has granted.
type promise struct {
	limiter *Limiter
	slot    slot
	ready   int64 // on the limiter's clock

	mu    sync.Mutex
	over  bool          // cancelled or settled
	moved chan struct{} // closed when it is; nil until a caller sleeps
}

func (p *promise) Permits() int { return p.slot.permits }

func (p *promise) At() time.Time {
	return p.limiter.begin.Add(time.Duration(p.ready))
}

func (p *promise) Delay() time.Duration {
	return time.Duration(max(0, p.ready-p.limiter.now()))
}

func (p *promise) Wait(ctx context.Context) error {
	for {
		moved, over := p.watch()
		if over {
			return reserve.ErrCancelled
		}
		if err := done.Cause(ctx); err != nil {
			p.Cancel()
			return err
		}
		wait := p.Delay()
		if wait == 0 {
			return nil
		}
		if deadline, ok := ctx.Deadline(); ok {
			if left := time.Until(deadline); left < wait {
				p.Cancel()
				return &reserve.WaitError{Wait: wait, MaxWait: left, Cause: context.DeadlineExceeded}
			}
		}
		wake.Sleep(ctx, wait, moved)
	}
}

func (p *promise) watch() (moved <-chan struct{}, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved == nil {
		p.moved = make(chan struct{})
	}
	return p.moved, p.over
}

func (p *promise) Cancel() { p.Settle(0) }

func (p *promise) Settle(actual int) {
	p.mu.Lock()
	was := p.over
	p.over = true
	if !was && p.moved != nil {
		close(p.moved)
	}
	p.mu.Unlock()
	actual = max(0, actual)
	l, n := p.limiter, p.slot.permits
	switch {
	case was || actual == n:
	case actual > n:
		l.charge(actual - n)
	default:
		// If this fails the permits are lost, and no promise is broken. The caller can't be told.
		_ = l.do(context.Background(), changes(change{refund: &refund{slot: p.slot, permits: n - actual}}))
	}
}

// charge takes permits that have been used already: now, or when the store is back.
func (l *Limiter) charge(n int) {
	r := changes(change{charge: charge{permits: n}})
	if l.do(context.Background(), r) != nil && !r.charged {
		l.owe(n)
	}
}

// withoutStore does for a request what the options say for a store that fails.
func (l *Limiter) withoutStore(
	ctx context.Context, r *request, maxWait time.Duration, why error,
) (reserve.Promise, error) {
	l.counters.fallbacks.Add(1)
	t := &unreported{limiter: l, permits: r.permits, charged: r.charged}
	switch l.mode {
	case open:
		t.granted()
		return &openGrant{unreported: t, at: time.Now()}, nil
	case local:
		alone, err := l.fallback()
		if err != nil {
			return nil, err
		}
		p := &localGrant{unreported: t}
		p.Reservation, err = alone.ReserveWithin(ctx, r.permits, maxWait)
		if err != nil {
			return nil, err
		}
		t.granted()
		return p, nil
	default:
		return nil, why
	}
}

// An unreported is a grant that the store does not know of yet.
type unreported struct {
	limiter *Limiter
	permits int
	charged bool // Redis may know of it: its answer was lost
	mu      sync.Mutex
	over    bool
}

func (u *unreported) granted() {
	if !u.charged {
		u.limiter.owe(u.permits)
	}
}

// settle corrects what is owed to the permits that were used, once, and reports whether it did.
func (u *unreported) settle(actual int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return false
	}
	u.over = true
	if more := max(0, actual) - u.permits; more > 0 || !u.charged {
		u.limiter.owe(more)
	}
	return true
}

func (u *unreported) settled() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.over
}

// A localGrant is a reservation by the limiter of this process alone.
type localGrant struct {
	reserve.Reservation
	*unreported
}

// Wait gives the permits back if it fails, as Reservation's does.
func (g *localGrant) Wait(ctx context.Context) error {
	err := g.Reservation.Wait(ctx)
	if err != nil {
		g.Settle(0)
	}
	return err
}

func (g *localGrant) Cancel() { g.Settle(0) }

func (g *localGrant) Settle(actual int) {
	if g.settle(actual) {
		g.Reservation.Settle(actual)
	}
}

// An openGrant is a reservation that nothing limits.
type openGrant struct {
	*unreported
	at time.Time
}

func (g *openGrant) Permits() int         { return g.permits }
func (g *openGrant) At() time.Time        { return g.at }
func (g *openGrant) Delay() time.Duration { return 0 }
func (g *openGrant) Cancel()              { g.Settle(0) }
func (g *openGrant) Settle(actual int)    { g.settle(actual) }

func (g *openGrant) Wait(ctx context.Context) error {
	if err := done.Cause(ctx); err != nil {
		g.Cancel()
		return err
	}
	if g.settled() {
		return reserve.ErrCancelled
	}
	return nil
}
