package reserve

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve/internal/hooks"
	"github.com/nextfree/pace/smooth"
)

// A Limiter hands out permits at a rate. Most callers should use [Limiter.Acquire], which waits for them. Callers that
// must not block use [Limiter.TryAcquire]. Callers that do something else meanwhile use [Limiter.Reserve].
//
// A request learns at once when it may go. It is never refused for its size (except by a window that is smaller: see
// [SizeError]). Unless the policy says [PayUpfront], a request goes as soon as the requests before it are paid for, and
// the next one waits for its permits. At 1/s, Acquire(8) goes at once, and the next Acquire(1) 8 s later. (A window has
// rules of its own: see package window.) Requests go in the order in which they were made. When one gives up, or
// settles for less than it reserved, those behind it go earlier.
//
// A Limiter comes from a [Policy] or from a variant's constructor. Its zero value is not usable. It must not be copied.
// All methods may be called at the same time.
type Limiter struct {
	clock    hooks.Clock
	busy     atomic.Int64 // no permit can be granted before this time; or unknown
	counting atomic.Bool  // refusals that busy decides are counted, which takes 4 to 10 ns each
	ledger   Ledger       // guarded, like all below, by mu

	// Every request writes the fields from here on. The lock, the first fields that it guards and the
	// ledger's state in smoothLimiter share a cache line. Requests that are reading the clock meanwhile
	// need only the line before.
	mu      sync.Mutex
	seen    int64  // the latest reading of the clock
	granted uint64 // permits so far
	cold    *cold
}

// cold holds the fields that most requests do not touch, to keep them off the hot cache line.
type cold struct {
	policy    *Policy
	sleepers  *sleepers     // nil until a caller sleeps
	refused   atomic.Uint64 // permits so far; not guarded
	givenBack uint64        // permits so far
}

// unknown is a time that has passed.
const unknown = math.MinInt64

// A smoothLimiter is a limiter and its ledger in one piece. Its size is a multiple of
// the cache line's 64 bytes, so that the allocator begins it at one.
type smoothLimiter struct {
	Limiter
	ledger smooth.Ledger
	cold   cold
}

// newLimiter returns a limiter that begins at a time.
func (p *Policy) newLimiter(begin int64) *Limiter {
	if t := &p.terms; t.Curve != nil {
		return p.smoothLimiter(begin, *smooth.New(t.Curve, begin, t.Stored, t.Upfront))
	}
	return p.ledgerLimiter(begin, p.variant.Ledger(begin, p.terms.Time))
}

func (p *Policy) ledgerLimiter(seen int64, ledger Ledger) *Limiter {
	l := &Limiter{clock: p.terms.Clock, ledger: ledger, seen: seen, cold: &cold{policy: p}}
	l.busy.Store(unknown)
	return l
}

func (p *Policy) smoothLimiter(begin int64, ledger smooth.Ledger) *Limiter {
	l := &smoothLimiter{Limiter: Limiter{clock: p.terms.Clock, seen: begin}, ledger: ledger, cold: cold{policy: p}}
	l.Limiter.ledger, l.Limiter.cold = &l.ledger, &l.cold
	l.busy.Store(unknown)
	return &l.Limiter
}

// Reserve reserves n permits (at least 1), however far off they are, unless the deadline of ctx or [WithMaxWait]
// forbids it. It is ReserveWithin(ctx, n, Forever).
func (l *Limiter) Reserve(ctx context.Context, n int) (r Reservation, err error) {
	err = l.reserve(ctx, n, Forever, &r)
	return
}

// ReserveWithin reserves n permits (at least 1) if they may be used within maxWait, the policy's longest wait and the
// context's deadline. Otherwise it takes nothing and returns a *[WaitError]. A negative maxWait counts as 0. A context
// that is done returns its cause. It does not block and does not allocate.
func (l *Limiter) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (r Reservation, err error) {
	err = l.reserve(ctx, n, maxWait, &r)
	return
}

// Acquire waits for n permits (at least 1), and returns how long that took. It takes nothing and returns at once with a
// *[WaitError] if they would come after the context's deadline or the policy's longest wait, and with the context's
// cause if that is done. A context that ends while it waits gives the permits back.
func (l *Limiter) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	if err := check(ctx, n); err != nil {
		return 0, err
	}
	deadline, t := l.clock.Deadline(ctx), l.clock.Now()
	l.mu.Lock()
	now := l.read(t)
	if deadline >= now && l.ledger.Take(now, n) {
		l.granted += uint64(n)
		l.mu.Unlock()
		return 0, nil
	}
	var r Reservation
	err = l.promise(now, n, Forever, deadline, &r)
	if err != nil || r.told <= now {
		l.mu.Unlock()
		return 0, err
	}
	return l.sleep(ctx, &r, now, deadline)
}

// TryAcquire takes n permits (at least 1) if they may be used now, and reports whether
// it did. It neither blocks nor allocates. For n < 1 it returns false.
//
// Do not poll a warming-up limiter. While it grants nothing it cools, and the next permit takes longer. Use
// Acquire.
func (l *Limiter) TryAcquire(n int) bool { return l.take(l.clock.Now(), n) }

// take is TryAcquire at a reading of the clock.
func (l *Limiter) take(t int64, n int) bool {
	if t < l.busy.Load() || n < 1 {
		if n >= 1 && l.counting.Load() {
			l.cold.refused.Add(uint64(n))
		}
		return false
	}
	l.mu.Lock()
	now := l.read(t)
	ok := l.ledger.Take(now, n)
	if ok {
		l.granted += uint64(n)
		l.free()
	} else {
		l.cold.refused.Add(uint64(n))
		if free := l.ledger.NextFree(now); free > now { // otherwise fewer permits would be granted
			l.busy.Store(l.look(now, free))
		}
	}
	l.mu.Unlock()
	return ok
}

// look returns when to look at a future time again: then, unless it may become earlier by itself.
func (l *Limiter) look(now, at int64) int64 {
	if w, ok := l.ledger.(interface{ Recheck() time.Duration }); ok {
		return min(at, saturate.Add(now, int64(w.Recheck())))
	}
	return at
}

// free records that permits may be granted now, also to callers with a stale reading of the clock. The limiter
// must be locked.
func (l *Limiter) free() {
	if l.busy.Load() != unknown {
		l.busy.Store(unknown)
	}
}

// Wait waits for one permit. It is Acquire(ctx, 1), in the form that many clients
// take a limiter in.
func (l *Limiter) Wait(ctx context.Context) error {
	_, err := l.Acquire(ctx, 1)
	return err
}

// Allow reports whether a permit may be used now, and takes it. It is TryAcquire(1).
func (l *Limiter) Allow() bool { return l.TryAcquire(1) }

// Rate returns the number of fresh permits per second.
func (l *Limiter) Rate() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ledger.Rate()
}

// Stored returns the number of permits that are stored now. It takes nothing. It returns 0 while permits are owed.
// [Limiter.NextFree] says until when. In a warming-up limiter stored permits take time.
func (l *Limiter) Stored() float64 {
	now := l.lock()
	defer l.mu.Unlock()
	return l.ledger.Stored(now)
}

// NextFree returns when a request for one permit, made now, would be granted. It
// takes nothing, so by the time of a request it may no longer be true.
func (l *Limiter) NextFree() time.Time {
	now := l.lock()
	defer l.mu.Unlock()
	return l.clock.Time(l.ledger.NextFree(now))
}

// read returns the limiter's time for a reading of the clock. A stale reading, from before another goroutine's,
// counts as that one. The limiter must be locked.
func (l *Limiter) read(t int64) (now int64) {
	if t > l.seen {
		if t-l.seen > stall {
			l.checkStall(t)
		}
		l.seen = t
	}
	return l.seen
}

// lock locks the limiter and returns its time.
func (l *Limiter) lock() (now int64) {
	t := l.clock.Now()
	l.mu.Lock()
	return l.read(t)
}

// check returns why a request can't be made at all.
func check(ctx context.Context, n int) error {
	if err := checkPermits(n); err != nil {
		return err
	}
	return done.Cause(ctx)
}

// reserve fills in the reservation.
func (l *Limiter) reserve(ctx context.Context, n int, maxWait time.Duration, r *Reservation) error {
	if n < 1 || ctx.Done() != nil {
		if err := check(ctx, n); err != nil {
			return err
		}
	}
	deadline, t := l.clock.Deadline(ctx), l.clock.Now()
	l.mu.Lock()
	err := l.promise(l.read(t), n, maxWait, deadline, r)
	l.mu.Unlock()
	return err
}

// promise fills in the reservation. The limiter must be locked.
func (l *Limiter) promise(now int64, n int, maxWait time.Duration, deadline int64, r *Reservation) error {
	latest := min(l.cold.policy.latest(now, maxWait), deadline)
	slot, ready, ok := l.ledger.Reserve(now, n, latest)
	if !ok {
		l.cold.refused.Add(uint64(n))
		return l.refusal(now, n, ready, maxWait, deadline)
	}
	if !r.uncounted {
		l.granted += uint64(n)
	}
	r.limiter, r.slot, r.told = l, slot, ready
	return nil
}

// latest returns the end of the longest wait that is allowed.
func (p *Policy) latest(now int64, maxWait time.Duration) int64 {
	if maxWait = min(maxWait, p.terms.MaxWait); maxWait < Forever {
		return saturate.Add(now, int64(max(0, maxWait)))
	}
	return never
}

// refusal returns the error of a request that the ledger has refused.
func (l *Limiter) refusal(now int64, n int, ready int64, maxWait time.Duration, deadline int64) error {
	if b, ok := l.ledger.(bounded); ok && n > b.Max() {
		return &SizeError{Permits: n, Max: b.Max()}
	}
	return l.cold.policy.refusal(now, ready, maxWait, deadline)
}

// refusal returns the error of a request that would be ready too late, or nil.
func (p *Policy) refusal(now, ready int64, maxWait time.Duration, deadline int64) error {
	limit := max(0, min(maxWait, p.terms.MaxWait))
	latest := saturate.Add(now, int64(limit))
	switch {
	case ready <= min(latest, deadline):
		return nil
	case deadline < latest:
		return &WaitError{Wait: until(ready, now), MaxWait: until(deadline, now), Cause: context.DeadlineExceeded}
	default:
		return &WaitError{Wait: until(ready, now), MaxWait: limit}
	}
}
