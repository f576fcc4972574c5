package shared

import (
	"context"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/wake"
	"github.com/nextfree/pace/reserve"
)

// A promise is a reservation that Redis granted.
type promise struct {
	limiter *Limiter
	slot    slot
	ready   int64 // on the limiter's clock

	mu    sync.Mutex
	over  bool          // cancelled or settled
	moved chan struct{} // closed when it is; nil until somebody sleeps
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
		if err := ended(ctx); err != nil {
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
		// Whether it worked can't be told from here; if not, the permits are lost, and no promise broken.
		_ = l.ask(context.Background(), &request{deadline: never,
			refund: &refund{slot: p.slot, permits: n - actual}})
	}
}

// charge takes permits that were used already, now or when Redis is back.
func (l *Limiter) charge(n int) {
	if l.ask(context.Background(), &request{permits: n, maxWait: never, deadline: never}) != nil {
		l.owe(n)
	}
}

// withoutRedis does what the limiter is to do while Redis fails.
func (l *Limiter) withoutRedis(ctx context.Context, n int, maxWait time.Duration, why error) (reserve.Promise, error) {
	switch l.mode {
	case open:
		l.owe(n)
		return &courtesy{limiter: l, permits: n, at: time.Now()}, nil
	case local:
		alone, err := l.fallback()
		if err != nil {
			return nil, err
		}
		p := &standIn{limiter: l}
		p.Reservation, err = alone.ReserveWithin(ctx, n, maxWait)
		if err != nil {
			return nil, err
		}
		l.owe(n)
		return p, nil
	default:
		return nil, why
	}
}

// A standIn is a reservation by the limiter of this process alone.
type standIn struct {
	reserve.Reservation
	limiter *Limiter
	once    sync.Once
}

// Wait gives the permits back if it fails, as Reservation's does.
func (s *standIn) Wait(ctx context.Context) error {
	err := s.Reservation.Wait(ctx)
	if err != nil {
		s.Settle(0)
	}
	return err
}

func (s *standIn) Cancel() { s.Settle(0) }

func (s *standIn) Settle(actual int) {
	s.once.Do(func() {
		s.limiter.owe(max(0, actual) - s.Permits())
		s.Reservation.Settle(actual)
	})
}

// A courtesy is a reservation that nobody limits.
type courtesy struct {
	limiter *Limiter
	permits int
	at      time.Time
	mu      sync.Mutex
	over    bool
}

func (c *courtesy) Permits() int         { return c.permits }
func (c *courtesy) At() time.Time        { return c.at }
func (c *courtesy) Delay() time.Duration { return 0 }
func (c *courtesy) Cancel()              { c.Settle(0) }

func (c *courtesy) Wait(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		c.Cancel()
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return reserve.ErrCancelled
	}
	return nil
}

func (c *courtesy) Settle(actual int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		c.limiter.owe(max(0, actual) - c.permits)
	}
}
