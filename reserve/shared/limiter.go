package shared

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/wake"
	"github.com/nextfree/pace/reserve"
)

// A Limiter is shared by all processes that use its name and store. It is a [reserve.Reserver]; its methods are
// [reserve.Limiter]'s, with a context and an error where they ask the store. Most callers need only [Limiter.Acquire].
//
// It must not be copied. All methods may be called concurrently. Share one Limiter of a name in a process: two make
// separate calls.
//
// Methods that ask the store return an *[UnavailableError] if that fails, a *[ConfigError] if the store refuses the
// key, and the cause of a context that is done. What a call gets for a caller whose context has ended goes back.
type Limiter struct {
	*family
	key   string // in the store
	terms atomic.Pointer[terms]
	queue queue[*request]
	busy  atomic.Int64  // no request is granted at once before then, as far as an answer is believed
	due   atomic.Int64  // when it can, by that answer
	left  atomic.Uint64 // the bits of the permits that could be used at once, by that answer; +Inf: there was none
	owed  debtAfterOutage
	stock stock
	name  string // for errors; "": see family

	uses    atomic.Bool  // this process tells when uses begin and end
	stopped atomic.Int64 // the end of the latest stop that this process has told, on its clock

	mu      sync.Mutex
	alone   *reserve.Limiter // the fallback; nil until it is needed
	since   int64            // when the last answer before that was made had come
	without bool             // it has no limit
}

// A family is what the limiters of a [Keyed] have in common; a [Limiter] has its own.
type family struct {
	settings
	nodes     *nodes
	counters  counters
	maxWait   time.Duration
	limitName string // reserve.WithName's
}

// New returns the limiter of a name, kept in Redis by Redis's clock. A new name is a full limiter.
//
// It returns a *[CurveError] for a policy that the script can't do (see [NewIn]), a *[reserve.OptionError] for
// reserve.WithStored of a part, and a *[reserve.ValueError] for a bad or nil argument or option, and for a client whose
// settings would break the promises.
func New(client Scripter, name string, policy *reserve.Policy, opts ...Option) (*Limiter, error) {
	return newOne(ofScripter(client, false), name, policy, opts)
}

func newOne(of opener, name string, policy *reserve.Policy, opts []Option) (*Limiter, error) {
	f, t, err := prepare(of, policy, opts)
	if err != nil {
		return nil, err
	}
	if f.maxKeys != 0 {
		return nil, &reserve.OptionError{Package: "shared", Option: "WithMaxKeys", Limiter: "a limiter of one key"}
	}
	l := newLimiter(f, f.prefix+":{"+name+"}", t)
	l.name = cmp.Or(f.limitName, name)
	return l, nil
}

func prepare(of opener, policy *reserve.Policy, opts []Option) (f *family, t *terms, err error) {
	f = &family{}
	if f.settings, err = newSettings(opts); err == nil {
		f.nodes, err = of(&f.settings)
	}
	if err == nil {
		t, err = f.adopt(policy)
	}
	return f, t, err
}

func newLimiter(f *family, key string, t *terms) *Limiter {
	l := &Limiter{family: f, key: key}
	l.name = f.limitName
	l.terms.Store(t)
	l.left.Store(math.Float64bits(math.Inf(1)))
	l.queue.send, l.queue.fill, l.queue.most, l.queue.now = l.send, l.fill, f.timeout, f.now
	l.stock.most, l.stock.flush = f.ahead, l.flush
	return l
}

func (l *Limiter) node() *node { return l.nodes.of(l.key) }

// Reserve is ReserveWithin(ctx, n, reserve.Forever).
func (l *Limiter) Reserve(ctx context.Context, n int) (reserve.Reservation, error) {
	return l.ReserveWithin(ctx, n, reserve.Forever)
}

// ReserveWithin is [reserve.Limiter.ReserveWithin], and returns a *[reserve.SizeError] if no time ever comes.
//
// Cancel and Settle of the reservation ask the store, and report no error: if that fails, the permits are lost.
func (l *Limiter) ReserveWithin(ctx context.Context, n int, maxWait time.Duration) (reserve.Reservation, error) {
	p, err := l.reserve(ctx, buys(n, int64(maxWait), never))
	if err != nil {
		return reserve.Reservation{}, err
	}
	return reserve.NewReservation(p), nil
}

// Acquire is [reserve.Limiter.Acquire]; the time of the call does not count as waited.
func (l *Limiter) Acquire(ctx context.Context, n int) (waited time.Duration, err error) {
	r, err := l.ReserveWithin(ctx, n, reserve.Forever)
	if err != nil {
		return 0, err
	}
	return (*engine.Reservation)(&r).Await(ctx)
}

// Wait is Acquire(ctx, 1).
func (l *Limiter) Wait(ctx context.Context) error {
	_, err := l.Acquire(ctx, 1)
	return err
}

// TryAcquire takes n permits (at least 1) if they may be used now, and reports whether it did. While the last answer
// shows that there are none, for at most a second, it refuses without asking.
func (l *Limiter) TryAcquire(ctx context.Context, n int) (bool, error) {
	if err := done.Cause(ctx); err != nil {
		return false, err
	}
	if l.stock.most > 0 && l.fill(buys(n, 0, never)) {
		return true, nil
	}
	if l.now() < l.busy.Load() && n > 0 {
		return false, nil
	}
	if err := l.check(n); err != nil {
		return false, err
	}
	_, err := l.reserve(ctx, buys(n, 0, never))
	switch err.(type) {
	case *reserve.WaitError, *reserve.SizeError:
		return false, nil
	}
	return err == nil, err
}

// Allow is TryAcquire(ctx, 1).
func (l *Limiter) Allow(ctx context.Context) (bool, error) { return l.TryAcquire(ctx, 1) }

func (l *Limiter) reserve(ctx context.Context, r *request) (reserve.Promise, error) {
	if err := l.check(r.permits); err != nil {
		return nil, err
	}
	r.uses = l.uses.Load()
	maxWait := max(0, min(time.Duration(r.maxWait), l.maxWait))
	r.maxWait = int64(maxWait)
	if until, limited := ctx.Deadline(); limited {
		now, left := l.now(), max(0, int64(time.Until(until)))
		if r.deadline = saturate.Add(now, left); l.mode != closed {
			r.by = now + left/4*3 // the rest is for the fallback
		}
	}
	if err := l.do(ctx, r); err != nil {
		return l.unanswered(ctx, r, maxWait, err)
	}
	gone := done.Cause(ctx)
	switch {
	case !r.granted:
		return nil, l.refused(ctx, r, maxWait)
	case r.ready > r.deadline || gone != nil: // on the way back
		l.queue.giveBack(r)
		return nil, cmp.Or(gone, l.refused(ctx, r, maxWait))
	}
	return &promise{limiter: l, slot: r.slot, permits: r.permits, ready: r.ready, unsure: r.unsure}, nil
}

func (l *Limiter) check(n int) error {
	if n < 1 {
		return valueError("permits", n, "at least 1")
	}
	if most := l.terms.Load().most; n > most {
		return &reserve.SizeError{Permits: n, Max: most}
	}
	return nil
}

func (l *Limiter) unanswered(
	ctx context.Context, r *request, maxWait time.Duration, why error,
) (reserve.Promise, error) {
	if _, unavailable := why.(*UnavailableError); !unavailable {
		return nil, why
	}
	if errors.Is(why, errPatience) { // the request may be under way still
		r = buys(r.permits, 0, r.deadline)
	}
	// The caller's context is about to say so.
	if r.deadline != never && l.mode == closed && l.now() >= r.deadline {
		wake.Sleep(ctx, 100*time.Millisecond, nil) // ends with it
		return nil, cmp.Or(done.Cause(ctx), context.DeadlineExceeded)
	}
	return l.withoutStore(ctx, r, maxWait, why)
}

func (l *Limiter) refused(ctx context.Context, r *request, maxWait time.Duration) error {
	if t := l.terms.Load(); maxWait == 0 && t.upfront { // no time that it is told would come
		if most := t.curve.AtOnce(r.after.stored); most > 0 && r.permits > most {
			return &reserve.SizeError{Permits: r.permits, Max: most}
		}
	}
	e := &reserve.WaitError{Wait: time.Duration(r.wait), MaxWait: maxWait, Limit: l.name}
	if until, limited := ctx.Deadline(); limited {
		if left := time.Until(until); left < maxWait {
			e.MaxWait, e.Cause = left, context.DeadlineExceeded
		}
	}
	return e
}

// do sends a request. After the context's end or errPatience it may be under way: the caller must not touch it.
func (l *Limiter) do(ctx context.Context, r *request) error {
	if err := done.Cause(ctx); err != nil {
		return err
	}
	if l.fill(r) {
		return nil
	}
	now, timeout := l.now(), int64(l.timeout)
	r.by = min(cmp.Or(r.by, r.deadline), saturate.Add(now, 2*timeout))
	n := l.node()
	probe, probed, err := n.circuit.enter(now)
	if probe {
		go l.probe(context.WithoutCancel(ctx), n)
	}
	if probed != nil {
		wake.Sleep(ctx, time.Duration(min(r.by-now, timeout)), probed)
		err = cmp.Or(done.Cause(ctx), n.circuit.outcome())
		r.by = min(r.by, now+timeout/2*3)
	}
	if err != nil {
		return err
	}
	if r.charge.permits > 0 { // its caller must know whether it was charged
		r.by = never
	}
	patience := time.Duration(r.by - l.now())
	if err := l.queue.do(ctx, r); err == errPatience {
		return &UnavailableError{Key: l.key, Timeout: patience.Round(time.Millisecond), Err: err}
	} else if err != nil {
		return err
	}
	return r.err
}
