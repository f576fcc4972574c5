// Package rate offers what golang.org/x/time/rate's own tests use of that package, made of pace:
// a port, so to speak, by somebody who keeps every name. The tests themselves are not here; the command in the
// folder above takes them out of the module cache.
//
// Where pace has no such thing, the adapter does the least that the tests ask for:
//
//   - More than the burst is refused. Pace alone would promise a time.
//   - Zero permits are granted at once. Pace asks for one at least.
//   - A limit of 0 is one permit in longer than a lifetime. Pace asks for a positive rate.
package rate

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/reserve"
)

// Limit is in permits per second.
type Limit float64

// Inf is no limit.
const Inf = Limit(math.MaxFloat64)

// InfDuration is longer than any wait.
const InfDuration = reserve.Forever

// Every turns an interval into a limit; one that is not positive into Inf.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return Limit(reserve.Per(1, interval))
}

// pace returns the limit as pace takes it.
func (l Limit) pace() float64 {
	switch {
	case l == Inf:
		return math.Inf(1)
	case l <= 0:
		return 1e-12
	default:
		return float64(l)
	}
}

// A Limiter is pace's on a clock that shows the latest time that anybody has mentioned.
type Limiter struct {
	mu      sync.Mutex
	limit   Limit
	burst   int
	clock   *clockwork.FakeClock
	limiter *reserve.Limiter

	// The tests log these.
	tokens          float64
	last, lastEvent time.Time
}

// NewLimiter returns one that is full.
func NewLimiter(limit Limit, burst int) *Limiter { return &Limiter{limit: limit, burst: burst} }

// at moves the clock on, if t is later. The first time of all is the limiter's begin.
// It locks the limiter.
func (l *Limiter) at(t time.Time) {
	l.mu.Lock()
	if l.clock == nil {
		l.clock = clockwork.NewFakeClockAt(t)
		l.limiter = tokenBucket(l.limit, l.burst, l.clock)
	}
	l.clock.Advance(max(0, t.Sub(l.clock.Now())))
	l.last = t
}

// TokensAt returns what is in the bucket; less than 0 when in debt.
func (l *Limiter) TokensAt(t time.Time) float64 {
	l.at(t)
	defer l.mu.Unlock()
	if l.tokens = l.limiter.Stored(); l.tokens == 0 { // the next permit tells how much is missing
		l.tokens = 1 - l.limiter.NextFree().Sub(l.clock.Now()).Seconds()*l.limiter.Rate()
	}
	return l.tokens
}

func (l *Limiter) Allow() bool                          { return l.AllowN(time.Now(), 1) }
func (l *Limiter) AllowN(t time.Time, n int) bool       { return l.reserveN(t, n, 0).ok }
func (l *Limiter) SetLimit(limit Limit)                 { l.SetLimitAt(time.Now(), limit) }
func (l *Limiter) WaitN(c context.Context, n int) error { return l.wait(c, n, time.Now(), realTimer) }

// A Reservation is pace's, with x/time/rate's fields.
type Reservation struct {
	ok        bool
	timeToAct time.Time
	by        *Limiter
	promise   *reserve.Reservation // nil, if nothing was promised
}

// reserveN asks at a time, for permits within a longest wait.
func (l *Limiter) reserveN(t time.Time, n int, maxWait time.Duration) Reservation {
	l.at(t)
	defer l.mu.Unlock()
	switch {
	case n > l.burst && l.limit != Inf:
		return Reservation{}
	case n == 0:
		return Reservation{ok: true, timeToAct: t}
	}
	promise, err := l.limiter.ReserveWithin(context.Background(), n, maxWait)
	if err != nil {
		return Reservation{}
	}
	l.lastEvent = promise.At()
	return Reservation{ok: true, timeToAct: promise.At(), by: l, promise: &promise}
}

// CancelAt gives back, whenever it comes.
func (r *Reservation) CancelAt(t time.Time) {
	if r.promise != nil {
		r.by.at(t)
		defer r.by.mu.Unlock()
		r.promise.Cancel()
	}
}

// SetLimitAt changes the limit.
func (l *Limiter) SetLimitAt(t time.Time, limit Limit) {
	l.at(t)
	defer l.mu.Unlock()
	l.limit = limit
	l.retime()
}

// SetBurstAt changes the burst.
func (l *Limiter) SetBurstAt(t time.Time, burst int) {
	l.at(t)
	defer l.mu.Unlock()
	l.burst = burst
	l.resize()
}

// A timer comes with a way to stop it, and one to let the time pass.
type timer = func(time.Duration) (c <-chan time.Time, stop func() bool, advance func())

func realTimer(d time.Duration) (<-chan time.Time, func() bool, func()) {
	t := time.NewTimer(d)
	return t.C, t.Stop, func() {}
}

var errRefused = errors.New("refused")

// wait sleeps by a timer of the tests, so not in pace.
func (l *Limiter) wait(ctx context.Context, n int, t time.Time, newTimer timer) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	maxWait := InfDuration
	if deadline, ok := ctx.Deadline(); ok {
		maxWait = deadline.Sub(t)
	}
	r := l.reserveN(t, n, maxWait)
	if !r.ok {
		return errRefused
	}
	delay := r.timeToAct.Sub(t)
	if delay <= 0 {
		return nil
	}
	c, stop, advance := newTimer(delay)
	defer stop()
	advance()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		r.CancelAt(time.Now())
		return ctx.Err()
	}
}
