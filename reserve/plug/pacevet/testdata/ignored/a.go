package a

import (
	"context"
	"log"
	"time"

	"github.com/nextfree/pace"
	body "github.com/nextfree/pace/reserve/plug/xtime/rate"
	"golang.org/x/time/rate"
)

func work() {}

func ignored(ctx context.Context, lim *rate.Limiter, other *body.Limiter, n int) {
	lim.Wait(ctx)                      // want `the error of Wait is ignored`
	other.WaitN(ctx, 2)                // want `the error of WaitN is ignored`
	lim.WaitN(context.Background(), n) // want `the error of WaitN is ignored`
	go lim.Wait(ctx)                   // want `the error of Wait is ignored`
	work()
}

func fixed(ctx context.Context, lim *rate.Limiter, p *pace.Limiter) error {
	lim.Wait(ctx)     // want `the error of Wait is ignored`
	p.Acquire(ctx, 3) // want `the error of Acquire is ignored`
	work()
	return nil
}

func ofPace(ctx context.Context, by pace.Reserver, lim *pace.Limiter) (int, error) {
	lim.Wait(ctx)            // want `the error of Wait is ignored`
	pace.Acquire(ctx, by, 2) // want `the error of Acquire is ignored`
	r, err := lim.Reserve(ctx, 1)
	if err != nil {
		return 0, err
	}
	r.Wait(ctx) // want `the error of Wait is ignored`
	return 1, nil
}

func taken(lim *rate.Limiter, p *pace.Limiter, now time.Time) {
	lim.Allow()        // want `the result of Allow is ignored: callers without a permit go too`
	lim.AllowN(now, 1) // want `the result of AllowN is ignored`
	p.Allow()          // want `the result of Allow is ignored`
	p.TryAcquire(1)    // want `the result of TryAcquire is ignored`
	go p.Allow()       // want `the result of Allow is ignored`
	work()
}

// What is right.

func emptied(lim *rate.Limiter, p *pace.Limiter, now time.Time, burst int) {
	lim.AllowN(now, burst)
	p.TryAcquire(10)
	_ = lim.Allow()
	p.TakeUpTo(1)
}

func handled(ctx context.Context, lim *rate.Limiter, p *pace.Limiter) error {
	if err := lim.Wait(ctx); err != nil {
		return err
	}
	waited, err := p.Acquire(ctx, 1)
	log.Print(waited, err)
	return lim.Wait(ctx)
}

func onPurpose(ctx context.Context, lim *rate.Limiter, p *pace.Limiter) {
	_ = lim.Wait(ctx)
	_, _ = p.Acquire(ctx, 1)
}

func neverEnds(lim *rate.Limiter, p *pace.Limiter, n int) {
	lim.Wait(context.Background())
	lim.WaitN(context.TODO(), 1)
	p.Acquire(context.Background(), n)
	ctx := context.Background()
	lim.Wait(ctx)
}

func asks(ctx context.Context, lim *rate.Limiter) {
	for {
		lim.Wait(ctx)
		if ctx.Err() != nil {
			return
		}
		work()
	}
}

func asksByChannel(ctx context.Context, lim *rate.Limiter) {
	lim.Wait(ctx)
	select {
	case <-ctx.Done():
		return
	default:
		work()
	}
}

type group struct{}

func (group) Wait(ctx context.Context) error { return nil }

func another(ctx context.Context, g group) { g.Wait(ctx) }
