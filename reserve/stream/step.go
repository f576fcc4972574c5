package stream

import (
	"context"
	"errors"
	"math"

	"github.com/nextfree/pace/internal/invalid"
	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

var valueError = invalid.In("stream")

const (
	unknown = 4 << 10  // if the rate is not known
	usual   = 32 << 10 // as io.Copy; larger ones are faster only for fast streams
	most    = 1 << 20  // of a copy
)

func notNil(v any, name string) {
	if isnil.Value(v) {
		panic(valueError(name, nil, "a value"))
	}
}

// A pacer reserves a permit for each byte.
type pacer struct {
	ctx   context.Context
	by    reserve.Reserver
	limit limit.Limit
}

func newPacer(ctx context.Context, by reserve.Reserver) pacer { return pacer{ctx, by, limit.Of(by)} }

// paid pays for a step of at most size bytes, and gives back what f, which passes on n of them, did not use.
func (p pacer) paid(size int, f func(step int) (n int, err error)) (step, n int, err error) {
	var r reserve.Reservation
	if step, err = p.pay(size, &r); err != nil {
		return step, 0, err
	}
	defer func() { // also if f panics: then nothing was passed on
		if n < step {
			r.Settle(n)
		}
	}()
	n, err = f(step)
	return step, n, err
}

// pay waits for a step's permits, at most size, and returns their number. R stays zero without limit.
func (p pacer) pay(size int, r *reserve.Reservation) (n int, err error) {
	rate := p.limit.Rate() // 0: it is not known
	n = step(size, rate)
	err = p.take(n, rate, r)
	for fits := largest(err); 0 < fits && fits < n; fits = largest(err) { // the smallest of several windows counts
		n = fits
		err = p.take(n, rate, r)
	}
	return n, err
}

func (p pacer) take(n int, rate float64, r *reserve.Reservation) (err error) {
	if math.IsInf(rate, 1) { // there is nothing to give back, and this is faster
		_, err = reserve.Acquire(p.ctx, p.by, n)
		return err
	}
	if *r, err = p.by.ReserveWithin(p.ctx, n, reserve.Forever); err != nil {
		return err
	}
	return r.Wait(p.ctx)
}

func step(size int, rate float64) int {
	switch {
	case rate == 0:
		return min(size, unknown)
	case rate >= 1000*usual:
		return int(min(float64(size), rate/1000))
	default:
		return min(size, usual, max(1, int(rate/10)))
	}
}

// guess returns how many bytes to ask a source for that gave n of step bytes.
//
// With whole steps, 32 sources of 1400 bytes each 10 ms use 13 % of 1 MiB/s instead of 91 %.
func guess(step, n int) int {
	if n < step {
		return max(1, n)
	}
	return step + step/8 + 1
}

// largest returns a SizeError's largest request, otherwise 0.
func largest(err error) int {
	if err == nil { // by far most often
		return 0
	}
	var tooLarge *reserve.SizeError
	if errors.As(err, &tooLarge) {
		return tooLarge.Max
	}
	return 0
}
