package engine

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/smooth"
)

// A Limiter is reserve.Limiter, which documents the methods. All exported methods may be called at the same time.
// Unexported methods that take the time now need the lock.
type Limiter struct {
	clock    Clock
	busy     atomic.Int64  // no permit can be granted before this time; or unknown
	counting atomic.Bool   // refusals that busy decides are counted, which takes 4 to 10 ns each
	version  atomic.Uint32 // see Version
	ledger   Ledger        // guarded, like all below, by mu

	// Every request writes what follows. It shares a cache line with smoothLimiter's ledger.
	mu      sync.Mutex
	seen    int64  // the latest reading of the clock
	granted uint64 // permits so far
	cold    *cold
}

// cold holds what most requests don't touch.
type cold struct {
	policy    *Policy
	sleepers  *sleepers     // nil until a caller sleeps
	refused   atomic.Uint64 // permits so far; not guarded
	givenBack uint64        // permits so far
}

// Made returns l. It panics if that is nil or a zero value.
func (l *Limiter) Made() *Limiter {
	if l == nil || l.ledger == nil {
		panic(notMade) // a variable, so that the compiler inlines Made
	}
	return l
}

var notMade any = "pace: a nil or zero Limiter: make it with a constructor such as pace.NewBursty, " +
	"and look at its error"

// unknown is a time that has passed.
const unknown = math.MinInt64

// A smoothLimiter is a multiple of 64 bytes, so that it begins a cache line.
type smoothLimiter struct {
	Limiter
	ledger smooth.Ledger
	cold   cold
}

// Reserve is reserve.Limiter's ReserveWithin, into r. N is at least 1, as everywhere below.
func (l *Limiter) Reserve(ctx context.Context, n int, maxWait time.Duration, r *Reservation) error {
	if err := done.Cause(ctx); err != nil {
		return err
	}
	deadline, t := l.clock.Deadline(ctx), l.clock.Now()
	l.mu.Lock()
	err := l.promise(l.read(t), n, maxWait, deadline, r)
	l.mu.Unlock()
	return err
}

func (l *Limiter) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	if err := done.Cause(ctx); err != nil {
		return 0, err
	}
	deadline, t := l.Made().clock.Deadline(ctx), l.clock.Now()
	l.mu.Lock()
	now := l.read(t)
	if deadline >= now && l.ledger.Take(now, n) {
		l.granted += uint64(n)
		l.mu.Unlock()
		return 0, nil
	}
	var r Reservation
	err = l.promise(now, n, forever, deadline, &r)
	if err != nil || r.told <= now {
		l.mu.Unlock()
		return 0, err
	}
	return l.sleep(ctx, &r, now, deadline)
}

func (l *Limiter) TryAcquire(n int) bool { return l.take(l.Made().clock.Now(), n) }

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
	if !ok {
		if later := l.clock.awake(now); later > now {
			now = l.read(later)
			ok = l.ledger.Take(now, n)
		}
	}
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

// look returns when to look again at a time that may become earlier by itself, or after a suspension.
func (l *Limiter) look(now, at int64) int64 {
	again := int64(l.cold.policy.terms.Recheck)
	if l.clock.Fake == nil {
		if l.clock.awake(now) > now {
			return now
		}
		again = cmp.Or(again, max(int64(lookEach), saturate.Add(at, -now)/(24*60))) // in a day once a minute
	}
	if again > 0 {
		at = min(at, saturate.Add(now, again))
	}
	return at
}

func (l *Limiter) free() {
	if l.busy.Load() != unknown {
		l.busy.Store(unknown)
	}
}

func (l *Limiter) Rate() float64 {
	return ask(l, unknown, func(of Ledger, _ int64) float64 { return of.Rate() })
}

func (l *Limiter) Stored() float64 { return ask(l, l.clock.Now(), Ledger.Stored) }

func (l *Limiter) NextFree() time.Time { return l.clock.Time(ask(l, l.clock.Now(), Ledger.NextFree)) }

// read returns the limiter's time for a reading, which may be older than another caller's.
func (l *Limiter) read(t int64) (now int64) {
	if t > l.seen {
		if t-l.seen > stall {
			l.checkStall(t)
		}
		l.seen = t
	}
	return l.seen
}

func (l *Limiter) lock() (now int64) { return l.lockFor(l.clock.Now()) }

func (l *Limiter) lockFor(t int64) (now int64) {
	if t != unknown {
		t = l.clock.awake(t)
	}
	l.mu.Lock()
	return l.read(t)
}

// ask asks the ledger under the lock, with the limiter's time for a reading. A function that captures variables would
// be allocated.
func ask[T any](l *Limiter, t int64, f func(of Ledger, now int64) T) T {
	now := l.lockFor(t)
	defer l.mu.Unlock()
	return f(l.ledger, now)
}

func (l *Limiter) promise(now int64, n int, maxWait time.Duration, deadline int64, r *Reservation) error {
	_, latest := l.cold.policy.latest(now, maxWait)
	slot, ready, ok := l.ledger.Reserve(now, n, min(latest, deadline))
	if !ok {
		l.clock.awake(now) // the next request knows
		l.cold.refused.Add(uint64(n))
		return cmp.Or(l.tooLarge(n), l.cold.policy.Refuse(l.ledger, n, now, ready, maxWait, deadline))
	}
	l.granted += uint64(n)
	r.limiter, r.slot, r.told = l, slot, ready
	return nil
}

func (p *Policy) latest(now int64, maxWait time.Duration) (limit time.Duration, end int64) {
	if limit = max(0, min(maxWait, p.terms.MaxWait)); limit < forever {
		return limit, saturate.Add(now, int64(limit))
	}
	return limit, never
}

func (l *Limiter) tooLarge(n int) error {
	if _, largest := l.ledger.Size(); n > largest {
		return l.cold.policy.terms.Errors.TooLarge(n, largest)
	}
	return nil
}

// Refuse is Refusal. But where nobody waits, a request for more than is ever there at once is too large: no time that
// it is told would come.
func (p *Policy) Refuse(of Ledger, n int, now, ready int64, maxWait time.Duration, deadline int64) error {
	limit, _ := p.latest(now, maxWait)
	if s, ok := of.(*smooth.Ledger); ok && limit == 0 && ready > now {
		if most := s.AtOnce(); most > 0 && n > most {
			return p.terms.Errors.TooLarge(n, most)
		}
	}
	return p.Refusal(now, ready, maxWait, deadline)
}

func (p *Policy) Refusal(now, ready int64, maxWait time.Duration, deadline int64) error {
	limit, latest := p.latest(now, maxWait)
	switch {
	case ready <= min(latest, deadline):
		return nil
	case deadline < latest:
		return p.terms.Errors.TooLong(until(ready, now), until(deadline, now), context.DeadlineExceeded)
	default:
		return p.terms.Errors.TooLong(until(ready, now), limit, nil)
	}
}
