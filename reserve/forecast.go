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
		l.rest.refused.Add(uint64(n))
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
