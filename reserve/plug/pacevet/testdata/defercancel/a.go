package a

import (
	"context"
	"time"

	"github.com/nextfree/pace"
	body "github.com/nextfree/pace/reserve/plug/xtime/rate"
	"golang.org/x/time/rate"
)

func work(...any) {}

func deferred(lim *rate.Limiter) {
	r := lim.Reserve()
	defer r.Cancel() // want `a deferred Cancel gives back permits that were used`
	time.Sleep(r.Delay())
	work()
}

func deferredAt(lim *rate.Limiter, now time.Time) {
	r := lim.ReserveN(now, 2)
	defer r.CancelAt(now) // want `a deferred Cancel`
	work(r)
}

func onTheOtherBody(ctx context.Context, lim *body.Limiter) error {
	r := lim.Reserve()
	defer func() { // want `a deferred Cancel`
		r.Cancel()
	}()
	select {
	case <-time.After(r.Delay()):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func ofPace(ctx context.Context, lim *pace.Limiter) error {
	r, err := lim.Reserve(ctx, 1)
	if err != nil {
		return err
	}
	defer r.Cancel() // want `a deferred Cancel`
	if err := r.Wait(ctx); err != nil {
		return err
	}
	work()
	return nil
}

// What is right.

func onLeaving(ctx context.Context, lim *body.Limiter) error {
	r := lim.Reserve()
	select {
	case <-time.After(r.Delay()):
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	}
	work()
	return nil
}

func unlessUsed(lim *rate.Limiter) (err error) {
	r := lim.Reserve()
	defer func() {
		if err != nil {
			r.Cancel()
		}
	}()
	work()
	return nil
}

func unlessUsedEarly(lim *rate.Limiter) {
	used := false
	r := lim.Reserve()
	defer func() {
		if used {
			return
		}
		r.Cancel()
	}()
	work()
	used = true
}

func settled(ctx context.Context, lim *pace.Limiter) error {
	r, err := lim.Reserve(ctx, 10)
	if err != nil {
		return err
	}
	defer r.Cancel() // does nothing after Settle
	work()
	r.Settle(3)
	return nil
}

func handedOn(ctx context.Context, lim *pace.Limiter) error {
	r, err := lim.Reserve(ctx, 10)
	if err != nil {
		return err
	}
	defer r.Cancel()
	work(&r) // may settle it
	return nil
}

func looks(lim *rate.Limiter) time.Duration {
	r := lim.Reserve()
	defer r.Cancel()
	return max(0, r.Delay())
}

func looksAt(ctx context.Context, lim *pace.Limiter) (time.Time, error) {
	r, err := lim.Reserve(ctx, 1)
	if err != nil {
		return time.Time{}, err
	}
	defer r.Cancel()
	return r.At().Add(time.Second), nil
}

func another(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work(ctx)
}
