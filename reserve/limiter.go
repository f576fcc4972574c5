package reserve

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/nextfree/pace/smooth"
)

// Forever is a wait without limit.
const Forever time.Duration = math.MaxInt64

// A Reserver can promise permits: a [Limiter], [All] of several, a key's limiter,
// one that is shared between machines.
type Reserver interface {
	// ReserveWithin reserves n permits (at least 1) if they can be used within
	// maxWait; if not it takes nothing and returns a *WaitError.
	ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (Reservation, error)
}

// A Limiter hands out permits at a rate. Most callers should use [Limiter.Acquire],
// which waits for them; those that must not block use [Limiter.TryAcquire], and
// those that do something else meanwhile use [Limiter.Reserve].
//
// A request is told at once when it may go, and is never refused for its size (but by
// a window, if it is larger than that: see [SizeError]).
// Unless the policy says [PayUpfront], it goes as soon as those before it have been paid for and
// the next one waits for it: at 1/s, Acquire(8) goes at once and the next Acquire(1) 8 s later.
//
// A Limiter comes from a [Policy] or from a variant's constructor; its zero value is
// not usable. It must not be copied. All methods may be called at the same time.
type Limiter struct {
	policy *Policy
	ledger Ledger // guarded, like all below, by mu
	clock  pausable
	moved  chan struct{} // closed when promised times move; nil until a sleeper asks
	_      [8]byte

	// From here on each request writes. The lock, what it guards first, and the
	// ledger's state in smoothLimiter share a cache line, and those who read the
	// clock meanwhile need another one.
	mu   sync.Mutex
	seen int64 // the latest reading of the real clock
}

// A smoothLimiter is a limiter and its ledger in one piece. Its size is a multiple of
// the cache line's 64 bytes, so that the allocator begins it at one.
type smoothLimiter struct {
	Limiter
	ledger smooth.Ledger
	_      [48]byte
}

// newLimiter returns a limiter that has been there since begin.
func (p *Policy) newLimiter(begin int64) *Limiter {
	if p.terms != nil {
		return p.smoothLimiter(begin, *smooth.New(p.terms.Curve, begin, p.terms.Stored, p.terms.Upfront))
	}
	return &Limiter{policy: p, ledger: p.ledger(begin), clock: pausable{until: begin}, seen: begin}
}

func (p *Policy) smoothLimiter(begin int64, ledger smooth.Ledger) *Limiter {
	l := &smoothLimiter{Limiter: Limiter{policy: p, clock: pausable{until: begin}, seen: begin}, ledger: ledger}
	l.Limiter.ledger = &l.ledger
	return &l.Limiter
}

// Reserve reserves n permits (at least 1), whenever they are. It is
// ReserveWithin(ctx, n, Forever).
func (l *Limiter) Reserve(ctx context.Context, n int) (r Reservation, err error) {
	_, err = l.reserve(ctx, n, Forever, &r)
	return
}

// ReserveWithin reserves n permits (at least 1) if they may be used within maxWait,
// the policy's longest wait and the context's deadline; otherwise it takes nothing
// and returns a *[WaitError]. A negative maxWait counts as 0. A context that is
// done returns its cause. It does not block and does not allocate.
func (l *Limiter) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (r Reservation, err error) {
	_, err = l.reserve(ctx, n, maxWait, &r)
	return
}

// Acquire waits for n permits (at least 1), and returns how long that took. It
// returns at once, having taken nothing, with a *[WaitError] if they would come
// after the context's deadline or the policy's longest wait, and with the
// context's cause if that is done. A context that ends while it waits gives the permits back.
func (l *Limiter) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	var r Reservation
	wait, err := l.reserve(ctx, n, Forever, &r)
	if err != nil || wait == 0 {
		return 0, err
	}
	return l.sleep(ctx, &r)
}

// TryAcquire takes n permits (at least 1) if they may be used now, and reports whether
// it did. It neither blocks nor allocates. For n < 1 it returns false.
//
// Polling keeps a warming-up limiter cold: what it stores while nobody is granted
// makes the next permit dearer. Callers that would poll should Acquire.
func (l *Limiter) TryAcquire(n int) bool {
	if n < 1 {
		return false
	}
	t := l.policy.now()
	l.mu.Lock()
	now, standing := l.read(t)
	ok := standing == 0 && l.ledger.Take(now, n)
	l.mu.Unlock()
	return ok
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

// SetRate changes the rate, from now on. Times that have been promised stay as they
// are, also that of the next request, which pays for those before it; stored
// permits scale with the capacity. At 1/s, after Acquire(8), SetRate(2) leaves the next caller to
// wait the same 8 s, and the one behind it 8.5 s. +Inf means no limit.
//
// What is given back later is worth what it was when it was sold, as long as the
// rate has changed no more than eight times since: time from before is worth nothing then.
//
// For a rate that is not positive it returns a *[ValueError] and changes nothing.
func (l *Limiter) SetRate(permitsPerSecond float64) error {
	if err := checkRate("reserve", permitsPerSecond); err != nil {
		return err
	}
	now := l.lock()
	defer l.mu.Unlock()
	l.ledger.SetRate(now, permitsPerSecond)
	return nil
}

// Stored returns the number of permits that are stored now. It takes nothing.
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
	return l.policy.time(add(l.ledger.NextFree(now), l.clock.paused))
}

// PauseUntil stops the limiter's clock until t. Every time that was promised and
// has not come moves by as much, those who sleep sleep on, and nothing is stored meanwhile. What
// is reserved during the pause may be used from its end on. A later PauseUntil
// extends the pause; an earlier one changes nothing.
//
// A sleeper whose deadline no longer fits gives up at once, and what it had reserved is for others.
//
// A pause can't be shortened, so a time that a server sent should be bounded first.
func (l *Limiter) PauseUntil(t time.Time) {
	until := l.policy.since(t)
	now := l.policy.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read(now)
	if l.clock.pauseUntil(l.seen, until) {
		l.wakeSleepers()
	}
}

// read turns a reading of the real clock into the limiter's time, and says for how
// long that stands still. A stale reading, from before another goroutine's, counts as that
// one. The limiter must be locked.
func (l *Limiter) read(real int64) (now, standing int64) {
	if real > l.seen {
		l.seen = real
	}
	return l.clock.at(l.seen)
}

// lock locks the limiter and returns its time.
func (l *Limiter) lock() (now int64) {
	t := l.policy.now()
	l.mu.Lock()
	now, _ = l.read(t)
	return now
}

// reserve fills in the reservation and returns how long it has to wait.
func (l *Limiter) reserve(ctx context.Context, n int, maxWait time.Duration, r *Reservation) (wait int64, err error) {
	if err := checkPermits(n); err != nil {
		return 0, err
	}
	if err := ended(ctx); err != nil {
		return 0, err
	}
	t := l.policy.now()
	limit, cause := l.policy.limit(ctx, t, maxWait)

	l.mu.Lock()
	now, standing := l.read(t)
	latest := int64(math.MaxInt64)
	if limit < latest {
		latest = add(now, add(limit, -standing))
	}
	var ok bool
	r.slot, ok = l.ledger.Reserve(now, n, latest)
	if ok {
		r.limiter, r.pause = l, l.clock.latest()
	}
	l.mu.Unlock()

	wait = add(r.slot.Ready-now, standing)
	if !ok {
		*r = Reservation{}
		if err := l.tooLarge(n); err != nil {
			return 0, err
		}
		return 0, &WaitError{Wait: time.Duration(wait), MaxWait: time.Duration(limit), Cause: cause}
	}
	return wait, nil
}

// limit returns the longest wait that is allowed at the time given, and why it is
// no longer: context.DeadlineExceeded, if the deadline is the reason.
func (p *Policy) limit(ctx context.Context, now int64, maxWait time.Duration) (limit int64, cause error) {
	limit = int64(max(0, min(maxWait, p.maxWait)))
	if deadline, ok := ctx.Deadline(); ok {
		if left := add(p.since(deadline), -now); left < limit {
			return left, context.DeadlineExceeded
		}
	}
	return limit, nil
}

// time turns a reading of the policy's clock into a time, and since turns it back.
// Between a time without a monotonic part (a date that a server sent) and the epoch
// the wall clock may have been set; between it and now it hardly was.
func (p *Policy) time(t int64) time.Time {
	if p.clock != nil {
		return p.epoch.Add(time.Duration(t))
	}
	now := time.Now()
	return now.Add(time.Duration(add(t, -int64(now.Sub(p.epoch)))))
}

func (p *Policy) since(t time.Time) int64 {
	if p.clock != nil || t != t.Round(0) { // Round(0) takes the monotonic part away
		return int64(t.Sub(p.epoch))
	}
	now := time.Now()
	return add(int64(now.Sub(p.epoch)), int64(t.Sub(now)))
}

// ended returns the cause of a context that is done. It asks Done, since some
// contexts (clockwork's, on a fake clock) block in Err until they are.
func ended(ctx context.Context) error {
	done := ctx.Done()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return context.Cause(ctx)
	default:
		return nil
	}
}
