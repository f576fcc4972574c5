package shared

import (
	"context"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/wake"
	"github.com/nextfree/pace/reserve"
)

type promise struct {
	limiter *Limiter
	slot    slot
	permits int   // the last of the slot
	ready   int64 // on the limiter's clock

	mu    sync.Mutex
	over  bool          // cancelled or settled
	moved chan struct{} // closed when it is; nil until a caller sleeps
}

func (p *promise) Permits() int { return p.permits }

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
	l, n := p.limiter, p.permits
	switch {
	case was || actual == n:
	case actual > n:
		l.charge(actual - n)
	default:
		// If this fails the permits are lost, and no promise is broken. The caller can't be told.
		_ = l.do(context.Background(), changes(change{refund: &refund{slot: p.slot, permits: n - actual}}))
	}
}

// charge takes used permits: now, or when the store is back.
func (l *Limiter) charge(n int) {
	r := changes(change{charge: charge{permits: n}})
	if l.do(context.Background(), r) != nil && !r.charged {
		l.owe(n)
	}
}
