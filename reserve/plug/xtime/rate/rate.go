package rate

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/attime"
)

// A Limit is a rate in tokens a second. Zero allows no events beyond what is stored.
type Limit float64

// Inf is no limit: it allows all events, and the burst does not matter.
const Inf = Limit(math.MaxFloat64)

// InfDuration is the Delay of a reservation that is not OK.
const InfDuration = time.Duration(math.MaxInt64)

// Every turns the time between two events into a Limit: Every(100*time.Millisecond) is 10. A time that is not
// positive gives Inf.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return Limit(pace.Per(1, interval))
}

// A Limiter is a token bucket: full at the start, with room for burst tokens, and refilled at its limit. An event
// takes a token, or n.
//
// Most callers should use Wait. Allow is for events that are dropped when there is no token, and Reserve for those
// that wait by themselves.
//
// The zero value allows no events. All methods may be called at the same time. A Limiter must not be copied.
type Limiter struct {
	// The fields tokens, last and lastEvent have the names that golang.org/x/time/rate's own tests print.
	mu     sync.Mutex
	limit  Limit
	burst  int
	tokens float64

	last, lastEvent time.Time
	begun           bool // a strict limiter has been used

	body atomic.Pointer[working] // nil: it was not used yet, or is strict
}

// NewLimiter returns a limiter of events up to rate r, with bursts of up to b. It is full.
func NewLimiter(r Limit, b int) *Limiter { return &Limiter{limit: r, burst: b} }

// Pace returns the limiter of pace that does the work. It has what this package's API has no names for, such as
// Acquire, Settle, Retime and Snapshot. Changes to it by SetPolicy or SetRate are not seen by Limit and Burst.
//
// In a strict program (see [Strict]) there is none, and Pace panics.
func (lim *Limiter) Pace() *reserve.Limiter {
	if body := lim.bodyOf(); body != nil {
		return body.Limiter
	}
	panic("rate: a program that is built with -tags xtimestrict has no limiters of pace")
}

// Limit returns the rate.
func (lim *Limiter) Limit() Limit {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	return lim.limit
}

// Burst returns the largest number of tokens that can be taken at once.
func (lim *Limiter) Burst() int {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	return lim.burst
}

// TokensAt is Tokens at time t.
func (lim *Limiter) TokensAt(t time.Time) float64 {
	if body := lim.bodyOf(); body != nil {
		return attime.Level(body.Limiter, t)
	}
	lim.mu.Lock()
	defer lim.mu.Unlock()
	return lim.advance(t)
}

// AllowN reports whether n events may happen at time t, and takes their tokens. Use it for events that are dropped
// otherwise.
func (lim *Limiter) AllowN(t time.Time, n int) bool {
	if body := lim.body.Load(); body != nil && n > 0 {
		return attime.Take(body.Limiter, t, n)
	}
	return lim.reserveN(t, n, 0).ok
}

// Reserve reserves a token.
func (lim *Limiter) Reserve() *Reservation { return lim.ReserveN(time.Now(), 1) }

// ReserveN reserves n tokens, and says when they may be used. For more than the burst the reservation is not OK.
func (lim *Limiter) ReserveN(t time.Time, n int) *Reservation {
	r := new(Reservation)
	lim.reserve(t, n, InfDuration, r)
	return r
}

// Wait waits for a token.
func (lim *Limiter) Wait(ctx context.Context) (err error) { return lim.WaitN(ctx, 1) }

// WaitN waits for n tokens. It returns an error if n is above the burst, or if the context ends (its Err). If the
// context's deadline would come before the tokens, it returns at once. Then errors.Is(err, context.DeadlineExceeded)
// holds.
func (lim *Limiter) WaitN(ctx context.Context, n int) (err error) {
	body := lim.bodyOf()
	if body == nil || n <= 0 {
		return lim.wait(ctx, n, time.Now(), realTimer)
	}
	if err := tooMany(n, body.limit, body.burst); err != nil {
		return err
	}
	if _, err = body.Acquire(ctx, n); err != nil {
		return waitError(ctx, n, err)
	}
	return nil
}

func tooMany(n int, limit Limit, burst int) error {
	if n > burst && limit != Inf {
		return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", n, burst)
	}
	return nil
}

// A deadlineError is WaitN's: the text of golang.org/x/time/rate, and more to ask it for.
type deadlineError struct{ n int }

func (e *deadlineError) Error() string {
	return fmt.Sprintf("rate: Wait(n=%d) would exceed context deadline", e.n)
}

func (e *deadlineError) Unwrap() error { return context.DeadlineExceeded }

func waitError(ctx context.Context, n int, err error) error {
	if _, ok := err.(*reserve.WaitError); ok {
		return &deadlineError{n}
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return err
}

func realTimer(d time.Duration) (<-chan time.Time, func() bool, func()) {
	t := time.NewTimer(d)
	return t.C, t.Stop, func() {}
}

// wait is WaitN by the timer that it is given: golang.org/x/time/rate's tests have one of their own.
func (lim *Limiter) wait(
	ctx context.Context, n int, t time.Time, newTimer func(time.Duration) (<-chan time.Time, func() bool, func()),
) error {
	if err := tooMany(n, lim.Limit(), lim.Burst()); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	most := InfDuration
	if deadline, ok := ctx.Deadline(); ok {
		most = deadline.Sub(t)
	}
	r := lim.reserveN(t, n, most)
	if !r.ok {
		return &deadlineError{n}
	}
	delay := r.DelayFrom(t)
	if delay == 0 {
		return nil
	}
	c, stop, passed := newTimer(delay)
	defer stop()
	passed()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	}
}

// SetLimit changes the rate.
func (lim *Limiter) SetLimit(newLimit Limit) { lim.SetLimitAt(time.Now(), newLimit) }

// SetLimitAt changes the rate at time t. What events have to wait for scales with it: at twice the rate they wait half
// as long.
func (lim *Limiter) SetLimitAt(t time.Time, newLimit Limit) {
	lim.change(t, func() { lim.limit = newLimit })
}

// SetBurst changes the burst.
func (lim *Limiter) SetBurst(newBurst int) { lim.SetBurstAt(time.Now(), newBurst) }

// SetBurstAt changes the burst at time t.
func (lim *Limiter) SetBurstAt(t time.Time, newBurst int) {
	lim.change(t, func() { lim.burst = newBurst })
}

func (lim *Limiter) change(t time.Time, set func()) {
	body := lim.bodyOf()
	lim.mu.Lock()
	defer lim.mu.Unlock()
	if body == nil {
		lim.settleAt(t)
		set()
		return
	}
	set()
	pace.Must(0, attime.Replace(body.Limiter, t, lim.policy())) // of the same kind, so it is no error
	lim.body.Store(&working{body.Limiter, lim.limit, lim.burst})
}
