package pacek8s

import (
	"context"
	"errors"
	"time"

	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// ErrStopped is the error of [RateLimiter.Wait] after Stop.
var ErrStopped = errors.New("pacek8s: the limiter is stopped")

// A RateLimiter is a flowcontrol.RateLimiter: what rest.Config takes. It comes from [NewRateLimiter]. All methods may
// be called at the same time.
type RateLimiter struct {
	by      reserve.Reserver
	stopped context.Context
	stop    context.CancelCauseFunc
}

// NewRateLimiter returns a limiter whose requests each take one permit of by. Client-go's
// flowcontrol.NewTokenBucketRateLimiter(20, 30) grants what pace.NewTokenBucket(20, 30) does. It returns a
// *[reserve.ValueError] if by is nil.
func NewRateLimiter(by reserve.Reserver) (*RateLimiter, error) {
	if err := checked("the limiter", by); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	return &RateLimiter{by: by, stopped: ctx, stop: stop}, nil
}

// Wait waits for a permit. If that would come after the context's deadline, it returns a
// *[reserve.WaitError] at once, and takes nothing. A context that ends while it waits gives the
// permit back. After Stop it returns [ErrStopped].
func (r *RateLimiter) Wait(ctx context.Context) error {
	if r.stopped.Err() != nil {
		return ErrStopped
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.stopped, func() { cancel(ErrStopped) })()
	_, err := reserve.Acquire(ctx, r.by, 1)
	return err
}

// Accept waits for a permit, however long that takes, or for Stop. Where the limiter fails, Accept returns at once
// without a permit. Most callers should use [RateLimiter.Wait], as client-go does.
func (r *RateLimiter) Accept() {
	var late *reserve.WaitError
	for errors.As(r.Wait(context.Background()), &late) {
		again := time.NewTimer(late.Wait - late.MaxWait)
		select {
		case <-again.C:
		case <-r.stopped.Done():
			again.Stop()
		}
	}
}

// TryAccept takes a permit if that may be used now, and reports whether it did: never after Stop.
func (r *RateLimiter) TryAccept() bool {
	if r.stopped.Err() != nil {
		return false
	}
	_, err := r.by.ReserveWithin(r.stopped, 1, 0)
	return err == nil
}

// QPS returns the limiter's rate, in permits per second: the present one, where that changes; 0 if
// the limiter can't tell.
func (r *RateLimiter) QPS() float32 {
	return float32(limit.Of(r.by).Rate())
}

// Stop refuses all requests from now on, and ends all waits. The limiter given to NewRateLimiter goes on.
func (r *RateLimiter) Stop() { r.stop(ErrStopped) }
