package reserve

import (
	"context"
	"iter"
	"math"
	"time"
)

// A forecaster is a ledger that can tell when a request would be ready behind others that have not
// been made. Ahead holds their sizes, each at least 1; nil: none. It takes nothing.
type forecaster interface {
	Behind(now int64, ahead iter.Seq[int], permits int) (ready int64)
}

// Peek returns how long a request for n permits (at least 1), made now, would wait. It takes nothing, so
// by the time of a request it may no longer be true. [WithMaxWait] does not apply.
//
// For n < 1 it returns a *[ValueError], and a *[SizeError] if the limiter never grants as many.
//
// At 1/s, after Acquire(8), Peek(1) returns 8 s. So does Peek(100), since a request does not wait for its own permits.
// With [PayUpfront] and nothing stored, Peek(8) returns 8 s at once.
func (l *Limiter) Peek(n int) (wait time.Duration, err error) {
	if err := checkPermits(n); err != nil {
		return 0, err
	}
	return l.behind(nil, n)
}

// Forecast returns when the last of n requests for one permit would go, if they were made from now on as fast as they
// are granted. By then n more items of work can have started. It takes nothing. An n below 1 counts as 1, which gives
// [Limiter.NextFree].
//
// It is exact if no other caller asks meanwhile and the rate stays. At 10/s with 10 stored, the last of 111 goes 10 s
// from now. 10 permits are stored, the next is prepaid, and each of the other 100 takes 100 ms.
func (l *Limiter) Forecast(n int) time.Time {
	n = max(1, n)
	now := l.lock()
	defer l.mu.Unlock()
	if f, ok := l.ledger.(interface{ Forecast(now int64, n int) int64 }); ok {
		return l.clock.Time(f.Forecast(now, n))
	}
	return l.clock.Time(l.readyBehind(now, once(n-1), 1))
}

// TakeUpTo takes as many of n permits as TryAcquire(1) would get if it were called until it fails, and returns how
// many. It is for work that is taken from a queue in batches. It neither blocks nor allocates. The permits that it does
// not get are not counted as refused.
//
// At 10/s with 5 stored, TakeUpTo(100) returns 6, since the next permit is prepaid; with [PayUpfront] 5.
func (l *Limiter) TakeUpTo(n int) (taken int) {
	t := l.clock.Now()
	if n < 1 || t < l.busy.Load() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.read(t)
	if b, ok := l.ledger.(interface {
		TakeUpTo(now int64, permits int) int
	}); ok {
		taken = b.TakeUpTo(now, n)
	} else {
		for taken < n && l.ledger.Take(now, 1) {
			taken++
		}
	}
	l.granted += uint64(taken)
	return taken
}

// once is a sequence of one size, or of none if that is 0.
func once(size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if size > 0 {
			yield(size)
		}
	}
}

// behind returns how long a request for n permits would wait behind requests of the sizes ahead,
// made now: see [hooks.Hooks].
func (l *Limiter) behind(ahead iter.Seq[int], n int) (wait time.Duration, err error) {
	now := l.lock()
	defer l.mu.Unlock()
	if b, ok := l.ledger.(bounded); ok && n > b.Max() {
		return 0, &SizeError{Permits: n, Max: b.Max()}
	}
	return max(0, until(l.readyBehind(now, ahead, n), now)), nil
}

// refuseBehind returns the error of a request behind requests of the sizes ahead: see [hooks.Hooks].
func (l *Limiter) refuseBehind(ctx context.Context, ahead iter.Seq[int], n int, maxWait time.Duration) error {
	if err := check(ctx, n); err != nil {
		return err
	}
	deadline, t := l.clock.Deadline(ctx), l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.read(t)
	var ready int64 = never
	if b, ok := l.ledger.(bounded); !ok || n <= b.Max() {
		ready = l.readyBehind(now, ahead, n)
	}
	err := l.refusal(now, n, ready, maxWait, deadline)
	if err != nil {
		l.cold.refused.Add(uint64(n))
	}
	return err
}

// readyBehind returns when that request would be ready. The limiter must be locked.
func (l *Limiter) readyBehind(now int64, ahead iter.Seq[int], n int) (ready int64) {
	if f, ok := l.ledger.(forecaster); ok {
		return f.Behind(now, ahead, n)
	}
	if ahead != nil {
		for one := range ahead {
			if n += one; n < 0 {
				n = math.MaxInt
			}
		}
	}
	_, ready, _ = l.ledger.Reserve(now, n, unknown) // no request is ready then, so it takes nothing
	return ready
}

// reserveUncounted is ReserveWithin, but its permits are not counted as granted until count.
func (l *Limiter) reserveUncounted(ctx context.Context, n int, maxWait time.Duration, r *Reservation) error {
	*r = Reservation{uncounted: true}
	err := l.reserve(ctx, n, maxWait, r)
	if err != nil {
		r.uncounted = false
	}
	return err
}

// count counts a reservation by reserveUncounted as granted.
func (r *Reservation) count() {
	if r.limiter == nil {
		return
	}
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	if r.uncounted {
		r.uncounted = false
		r.limiter.granted += uint64(r.slot.Permits)
	}
}
