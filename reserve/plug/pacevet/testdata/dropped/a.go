package a

import (
	"context"
	"errors"
	"time"

	"github.com/nextfree/pace"
	body "github.com/nextfree/pace/reserve/plug/xtime/rate"
	"golang.org/x/time/rate"
)

func keep(...any) {}

func dropped(lim *rate.Limiter, other *body.Limiter, n int) error {
	lim.Reserve()                 // want `Reserve's reservation is dropped: it takes permits`
	other.ReserveN(time.Now(), n) // want `ReserveN's reservation is dropped`
	if !lim.Reserve().OK() {      // want `Reserve's reservation is dropped after OK`
		return errors.New("too many")
	}
	r := lim.Reserve() // want `Reserve's reservation is dropped after OK`
	if !r.OK() {
		return errors.New("too many")
	}
	return nil
}

func ofPace(ctx context.Context, lim *pace.Limiter, by pace.Reserver) error {
	lim.Reserve(ctx, 1)           // want `Reserve's reservation is dropped`
	_, err := lim.Reserve(ctx, 1) // want `Reserve's reservation is dropped`
	if err != nil {
		return err
	}
	if _, err := by.ReserveWithin(ctx, 1, time.Second); err != nil { // want `ReserveWithin's reservation is dropped`
		return err
	}
	return nil
}

// What is right.

type job struct{ r *rate.Reservation }

func kept(ctx context.Context, lim *rate.Limiter, p *pace.Limiter) (*rate.Reservation, error) {
	time.Sleep(lim.Reserve().Delay())
	r := lim.Reserve()
	if !r.OK() {
		return nil, errors.New("too many")
	}
	time.Sleep(r.Delay())
	later := lim.Reserve()
	defer func() { keep(later.OK(), later.Delay()) }()
	keep(lim.Reserve())
	j := job{lim.Reserve()}
	j.r = lim.Reserve()
	q, err := p.Reserve(ctx, 1)
	if err != nil {
		return nil, err
	}
	if err := q.Wait(ctx); err != nil {
		return nil, err
	}
	return lim.Reserve(), nil
}

// Permits that are taken after the fact.
func charged(ctx context.Context, lim *rate.Limiter, p *pace.Limiter, n int) {
	_ = lim.ReserveN(time.Now(), n)
	lim.ReserveN(time.Now(), -n) // negative names it
	_, _ = p.Reserve(ctx, n)
}
