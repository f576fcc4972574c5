package shared

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/done"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

const (
	leastLease = 20 * time.Millisecond
	mostLease  = time.Second
	// fewest permits in a horizon are worth a lease; fewer are asked for as they are needed.
	fewest = 8
)

// WithLease lets each process buy permits in advance, for a key that is too hot for one Redis: as many as it has
// lately used in d, from 20 ms to 1 s. It buys them as any caller does, first come, first served, and hands them to
// its own callers at the times that Redis promised: so processes get permits by what they ask for, no two at the same
// time, and few calls reach Redis. The longer d, the fewer. Default: no leases.
//
// At 10,000/s, of which this process uses 4,000, and with d = 100 ms, it asks Redis about 20 times a second, for 200
// permits each time, before it has used up those of the last time.
//
// A try that is refused is demand like any other. Processes whose callers only try ask for less at a time while more
// is wanted than there is: four processes that try for 40,000/s of 20,000/s ask Redis 150 times a second each, get
// the same to within 2 %, and together 1.6 % more or less than the rate in any 100 ms.
//
// What it costs:
//   - Permits that a process has bought and not used go back d after their time. Those of a process that dies are
//     lost.
//   - A process uses the permits that it holds whenever its callers ask. So in any time t all processes together use
//     at most capacity + rate * t, and the permits that they held unused: as many as they use in d. If their callers
//     always wait for permits, nothing is held.
//   - Where nothing is stored, a request that would have gone at once may wait for the permits that other processes
//     have bought: up to d, or more if they use more than the rate.
//   - PauseUntil and Resume do not concern permits that other processes hold. A process's own PauseUntil, Resume and
//     SetRate first give back all but those promised to callers.
//
// Requests for as many permits as the rate gives in d, or more, are not leased, nor is a process that uses less than
// 8 in d: these ask Redis as without leases. Promises within a process move up when others in it give up, as in a
// limiter of one process. It is for [New]; [NewKeyed] refuses it.
func WithLease(d time.Duration) Option {
	return func(s *settings) error {
		if d < leastLease || d > mostLease {
			return valueError("WithLease", d, "20 ms to 1 s")
		}
		s.horizon = d
		return nil
	}
}

// leases are what a process has bought in advance, and how it buys. A limiter of this process hands the permits out;
// the pool is its ledger.
type leases struct {
	limiter *Limiter
	horizon int64
	local   *reserve.Limiter
	ahead   int64 // what the local limiter's clock is ahead of the limiter's

	mu     sync.Mutex
	policy *reserve.Policy
	visit  func(now int64, h *pool) // what the policy's Change does

	turn    chan struct{} // of who buys; in order
	line    atomic.Int64  // permits that callers in the line want
	outcome atomic.Pointer[outcome]
	newest  atomic.Pointer[lease]
	refused atomic.Int64 // permits, that were asked for as well
	looked  atomic.Int64 // when a refusal was last the reason to buy
	idle    *time.Timer  // when nothing was bought for long, what is left goes back
}

// An outcome tells the callers in the line that a purchase failed or was refused, so that they need not try again.
type outcome struct {
	number  int64
	err     error        // nil: refused
	charged atomic.Int64 // permits that Redis may have been charged for although there was no answer
	ready   int64        // before that no permit was to be had
}

// pays reports whether the store may have charged the permits of a request, and counts them as used.
func (o *outcome) pays(permits int) bool {
	return o.charged.Load() > 0 && o.charged.Add(-int64(permits)) >= 0
}

func newLeases(l *Limiter) (*leases, error) {
	h := &leases{limiter: l, horizon: int64(l.horizon), ahead: math.MinInt64, turn: make(chan struct{}, 1)}
	h.outcome.Store(&outcome{})
	upfront := l.terms.Load().upfront
	p, err := reserve.NewPolicy(reserve.Variant{
		Package: "shared", Limiter: "a lease",
		Ledger: func(now int64, _ func(int64) time.Time) reserve.Ledger {
			h.ahead = max(h.ahead, now-l.now())
			return newPool(upfront, h.horizon, func() { go h.prefetch() })
		},
		Change: func(now int64, of reserve.Ledger) { h.visit(now, of.(*pool)) },
	}, 1, reserve.WithMaxWait(min(l.maxWait, longestWait)))
	if err != nil {
		return nil, err
	}
	h.policy = p
	for range 8 { // between its two clocks the process may have been interrupted, but hardly each time
		h.local = p.Limiter()
	}
	return h, nil
}

// with runs visit on the pool, and then wakes callers whose times have changed.
func (h *leases) with(visit func(now int64, h *pool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.visit = visit
	_ = h.local.SetPolicy(h.policy) // calls its Change under the limiter's lock
}

// lends reports whether requests for so many permits are leased.
func (h *leases) lends(permits int) bool {
	return h != nil && permits > 0 && float64(permits) < h.most()
}

// most returns how many permits a process holds at most: those of a horizon.
func (h *leases) most() float64 {
	t := h.limiter.terms.Load()
	if t.unlimited() {
		return 0
	}
	return t.curve.Rate * time.Duration(h.horizon).Seconds()
}

// take takes permits out of the pool if they may be used now.
func (h *leases) take(permits int) bool {
	return h.line.Load() == 0 && h.local.TryAcquire(permits)
}

// acquire waits for permits of the pool, and returns false if more have to be bought.
func (h *leases) acquire(ctx context.Context, permits int) (waited time.Duration, err error, ok bool) {
	if h.line.Load() > 0 {
		return 0, nil, false
	}
	waited, err = h.local.Acquire(ctx, permits)
	return waited, err, !isUncovered(err)
}

// longestWait of a caller, 100 years, is less than what the pool says of permits that were not bought.
const longestWait = 100 * 365 * 24 * time.Hour

func isUncovered(err error) bool {
	e, refused := err.(*reserve.WaitError)
	return refused && e.Wait > longestWait
}

// rounds is how often a caller whose turn it is looks for permits in the pool, and buys some. One round is enough,
// unless others take them or give some back in the same instant. After that it asks the store for its own permits.
const rounds = 4

// ask gets a request answered: by a promise, by an error, or, if it is refused, in the request.
func (h *leases) ask(ctx context.Context, r *request) (reserve.Promise, error) {
	if err := done.Cause(ctx); err != nil {
		return nil, err
	}
	joined := h.outcome.Load().number
	if h.line.Load() == 0 {
		if p, answered := h.serve(r); answered {
			return p, nil
		}
	}
	h.line.Add(int64(r.permits))
	defer h.line.Add(-int64(r.permits))
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	for range rounds {
		if p, answered := h.serve(r); answered {
			return p, nil
		}
		if o := h.outcome.Load(); o.number > joined {
			if o.err != nil {
				r.charged = o.pays(r.permits)
				return nil, o.err
			}
			if now := h.limiter.now(); o.ready > min(r.deadline, saturate.Add(now, r.maxWait)) {
				h.refuse(r, o.ready-now)
				return nil, nil
			}
		}
		bought, err := h.buy(ctx, r)
		if err != nil || !bought {
			return nil, err
		}
	}
	return nil, h.limiter.do(ctx, r)
}

// serve answers a request out of the pool, or returns false: then more has to be bought.
func (h *leases) serve(r *request) (p reserve.Promise, answered bool) {
	within := r.maxWait
	if r.deadline != never {
		within = max(-1, min(within, r.deadline-h.limiter.now()))
	}
	if within < 0 {
		h.refuse(r, 1)
		return nil, true
	}
	l := &leased{leases: h, lease: h.newest.Load()}
	var err error
	l.Reservation, err = h.local.ReserveWithin(context.Background(), r.permits, time.Duration(within))
	switch e := err.(type) {
	case nil:
		return l, true
	case *reserve.WaitError:
		if isUncovered(e) {
			return nil, false
		}
		h.refuse(r, int64(e.Wait))
	}
	return nil, true
}

// missed counts permits that a caller was refused without being asked for: they are demand like others.
func (h *leases) missed(permits int) {
	if h.lends(permits) {
		h.refused.Add(int64(permits))
		h.lookFor()
	}
}

// lookFor buys permits after a refusal, at most once in a quarter of a horizon. Redis refuses those who only try
// while it is in debt to a process that buys in advance: so they must buy like that process, or it keeps the limiter.
func (h *leases) lookFor() {
	now, last := h.limiter.now(), h.looked.Load()
	if now-last >= h.horizon/4 && h.looked.CompareAndSwap(last, now) {
		go h.prefetch()
	}
}

func (h *leases) refuse(r *request, wait int64) {
	h.refused.Add(int64(r.permits))
	r.granted, r.wait = false, max(1, wait)
}
