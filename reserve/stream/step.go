package stream

import (
	"context"
	"errors"
	"math"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
)

// Sizes of steps, in bytes.
const (
	unknown = 4 << 10  // where the rate is not known
	usual   = 32 << 10 // what io.Copy moves at a time: more is faster only for fast streams
	most    = 1 << 20  // that is copied without asking again
)

// notNil panics if what a constructor was given is nil.
func notNil(v any, name string) {
	if isnil.Value(v) {
		panic(&reserve.ValueError{Package: "stream", Name: name, Value: nil, Want: "a value"})
	}
}

// A pacer reserves a permit for each byte.
type pacer struct {
	ctx context.Context
	by  reserve.Reserver
}

// pay waits for the permits of a step of at most size bytes (at least 1), and
// returns how many they are. The reservation, a zero one before, is to be settled if
// fewer are used; it stays zero where there is nothing to give back.
func (p pacer) pay(size int, r *reserve.Reservation) (n int, err error) {
	rate := p.rate()
	n = step(size, rate)
	err = p.take(n, rate, r)
	for fits := largest(err); 0 < fits && fits < n; fits = largest(err) { // of several windows the smallest counts
		n = fits
		err = p.take(n, rate, r)
	}
	return n, err
}

// take waits for n permits.
func (p pacer) take(n int, rate float64, r *reserve.Reservation) (err error) {
	if math.IsInf(rate, 1) { // they cost nothing, and this is cheaper
		_, err = reserve.Acquire(p.ctx, p.by, n)
		return err
	}
	if *r, err = p.by.ReserveWithin(p.ctx, n, reserve.Forever); err != nil {
		return err
	}
	return r.Wait(p.ctx)
}

// rate returns the Reserver's permits per second, 0 if it can't tell.
func (p pacer) rate() float64 {
	if r, ok := p.by.(interface{ Rate() float64 }); ok {
		return r.Rate()
	}
	return 0
}

// step returns how many of size bytes to move at a time: see the package's
// documentation.
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

// guess returns how much a source that was asked for step bytes and gave n seems to give at a
// time: n, and an eighth more than a step that it filled.
//
// The permits of a step are taken while its source is waited for. Permits that come back then are worth
// no more than what still fits the store, and until then others waited. So a reader that asked for
// whole steps would cost those it shares a limiter with up to nine tenths of the rate: with
// 32 sources of 1400 bytes each 10 ms, at 1 MiB/s and nothing saved up, 13 % of the
// rate are used instead of 91 %. Where sources answer at once it makes no difference.
func guess(step, n int) int {
	if n < step {
		return max(1, n)
	}
	return step + step/8 + 1
}

// largest returns how many permits may be asked for, if the error says that it was
// too many at once: a window's does.
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
