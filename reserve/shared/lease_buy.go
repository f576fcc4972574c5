package shared

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// buy asks the store for the permits that callers wait for, and for those that the process is going to use. The
// caller, whose request is the first in the line, must have the turn. It reports whether permits were bought. If not,
// and there is no error, the request says how long it would have to wait.
func (h *leases) buy(ctx context.Context, r *request) (bought bool, err error) {
	q := buys(0, r.maxWait, r.deadline)
	q.by = cmp.Or(r.by, r.deadline)
	beside := int64(0) // permits that are not for the caller
	h.with(func(now int64, pool *pool) {
		pool.advance(now)
		free := pool.free()
		q.permits = amount(max(h.line.Load(), h.goal(now, pool)) - free)
		beside = int64(q.permits) - max(0, int64(r.permits)-free)
		h.takeAlong(q, pool)
	})
	if q.permits < 1 { // a caller has given back meanwhile
		return true, nil
	}
	t, rest := h.limiter.terms.Load(), int64(0)
	if t.upfront { // the request is refused by its own time, not by that of the rest
		rest = int64(min(float64(beside)*t.curve.Interval, longest))
		q.maxWait, q.deadline = saturate.Add(q.maxWait, rest), saturate.Add(q.deadline, rest)
	}
	err = h.purchase(ctx, q, int64(q.permits)-beside)
	if err != nil {
		_, unavailable := err.(*UnavailableError) // else it may be under way still
		r.charged = unavailable && q.charged
		return false, err
	}
	if !q.granted {
		least := q.wait // of any request
		if t.upfront {
			_, cost := t.curve.Price(q.seen.stored, 1)
			least = int64(min(q.seen.debt+cost, longest))
		}
		h.settled(&outcome{ready: saturate.Add(h.limiter.now(), least)})
		h.refuse(r, q.wait-rest)
	}
	return q.granted, nil
}

// prefetch buys before the permits are used up, unless a caller is buying already.
func (h *leases) prefetch() {
	select {
	case h.turn <- struct{}{}:
	default:
		return
	}
	// There is no caller for a client's panic to go to. Those in the line have their error, and the circuit knows.
	defer h.swallow()
	defer func() { <-h.turn }()
	q := buys(0, min(2*h.horizon, int64(h.limiter.maxWait)), never)
	h.with(func(now int64, pool *pool) {
		pool.advance(now)
		q.permits = amount(h.goal(now, pool) - pool.free())
		h.takeAlong(q, pool)
	})
	if q.permits > 0 {
		_ = h.purchase(context.Background(), q, 0)
	}
}

// Where there are too few permits, how many of them a process asks for decides its share.
const (
	// eager is how many permits a process asks for, for each that its callers wait for, when half a horizon is sold
	// already. With more, the leases are longer and the shares of the processes less even.
	eager = 4
	// reserved makes the leases of processes whose callers only try shorter, the further ahead Redis is sold: to a
	// quarter at a tenth of a horizon. Callers who try use a lease more slowly than Redis sells it, and while they use
	// the rest, another lease is in use as well.
	reserved = 30
	// contended is the part of a horizon that such a process asks for at most, if more than 2 % of what its callers
	// wanted was refused. At 20,000/s, four processes and a horizon of 100 ms, with an eighth every 100 ms hold the
	// rate to within 2.0 %, with a sixteenth to within 1.6 %; with neither of both rules to within 14 %.
	contended = 1. / 16
)

// goal returns how many permits the process should hold: as many as its callers asked for in a horizon. Where callers
// wait, that says little: they use whatever they get, and as a process buys what it uses, any shares would stay as they
// are. There a process asks for so many permits for each that is waited for, fewer the further ahead Redis is sold:
// a number that is the same for all processes.
func (h *leases) goal(now int64, pool *pool) int64 {
	missed := amount(h.refused.Swap(0))
	pool.demand.add(now, h.horizon, missed)
	pool.missed.add(now, h.horizon, missed)
	goal := min(pool.demand.over(now, h.horizon), h.most())
	if goal < fewest {
		return 0
	}
	if waiting := pool.waiting(now) + h.line.Load(); waiting > 0 {
		if pool.sold > 0 {
			goal = min(goal, eager*float64(waiting)*max(0, float64(h.horizon-pool.sold))/float64(pool.sold))
		}
		return int64(goal)
	}
	share := 1.0
	if pool.debt > 0 {
		share = 1 / (1 + reserved*float64(pool.sold)/float64(h.horizon))
	}
	if pool.missed.over(now, h.horizon) > goal/50 {
		share = min(share, contended)
	}
	return int64(max(fewest, goal*share))
}

// A demand counts the permits that were asked for in the last horizon.
type demand struct {
	begin           int64
	before, current float64 // in the horizon up to then, and since
}

func (d *demand) add(now, horizon int64, permits int) {
	d.roll(now, horizon)
	d.current += float64(permits)
}

// over returns how many were asked for in the last horizon, as if the demand of the horizon before had been even.
func (d *demand) over(now, horizon int64) float64 {
	d.roll(now, horizon)
	return d.current + d.before*(1-float64(now-d.begin)/float64(horizon))
}

func (d *demand) roll(now, horizon int64) {
	switch passed := now - d.begin; {
	case passed >= 2*horizon:
		*d = demand{begin: now}
	case passed >= horizon:
		*d = demand{begin: d.begin + horizon, before: d.current}
	}
}

// amount bounds a number of permits, for a machine of 32 bits.
func amount(permits int64) int { return int(min(permits, math.MaxInt32)) }

// takeAlong adds to a request a refund of what an expired lease had left.
func (h *leases) takeAlong(q *request, pool *pool) {
	if n := len(pool.back); n > 0 && q.permits > 0 {
		back := pool.back[n-1] // that place is soon another's
		q.refund = &back
		pool.back = pool.back[:n-1]
	}
}

// purchase asks for a lease, of which so many permits are the caller's own, and adds it to the pool if it is granted.
func (h *leases) purchase(ctx context.Context, q *request, own int64) (err error) {
	returned := false
	had := cmp.Or(q.by, never) - h.limiter.now()
	defer func() {
		if !returned { // the client panics, or ends its goroutine
			err = &UnavailableError{Key: h.limiter.key, Err: errAborted}
		}
		if had < int64(h.limiter.timeout) && late(err) {
			return // others may have more time
		}
		switch err.(type) {
		case *UnavailableError, *ConfigError:
			o := &outcome{err: err}
			if q.charged { // the caller's own are used already
				o.charged.Store(int64(q.permits) - own)
			}
			h.settled(o)
		}
	}()
	err = h.limiter.do(ctx, q)
	if returned = true; err != nil || !q.granted {
		return err
	}
	begin := q.ready
	if !q.slot.deferred && q.slot.terms.upfront {
		_, cost := q.slot.terms.curve.Price(q.slot.stored, float64(q.slot.permits))
		begin -= int64(min(cost, longest))
	}
	h.with(func(now int64, pool *pool) {
		l := pool.add(now, begin+h.ahead, q.slot)
		h.newest.Store(l)
		pool.low = math.MaxInt64
		if goal := h.goal(now, pool); goal > 0 {
			pool.low = pool.bought - goal/2
		}
		h.lookAgain(l.expires - now)
	})
	return nil
}

// settled tells the callers in the line how a purchase ended. The caller must have the turn.
func (h *leases) settled(o *outcome) {
	o.number = h.outcome.Load().number + 1
	h.outcome.Store(o)
}

// lookAgain starts a timer that looks for permits that have expired, if nothing is bought before. The pool must be
// locked.
func (h *leases) lookAgain(after int64) {
	d := time.Duration(saturate.Add(after, h.horizon/4))
	if h.idle == nil {
		h.idle = time.AfterFunc(d, h.tidy)
		return
	}
	h.idle.Reset(d)
}

// swallow ends and counts a panic.
func (h *leases) swallow() {
	if recover() != nil {
		h.limiter.counters.panics.Add(1)
	}
}

// tidy gives expired permits back to the store.
func (h *leases) tidy() {
	defer h.swallow() // as in prefetch
	h.with(func(now int64, pool *pool) {
		pool.advance(now)
		if len(pool.leases) > 0 {
			h.lookAgain(pool.leases[0].expires - now)
		}
	})
	_ = h.sendBack(context.Background())
}

// emptied empties the pool, except for what callers were promised, and runs do while nothing is bought.
func (h *leases) emptied(ctx context.Context, do func() error) error {
	if h == nil {
		return do()
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.turn }()
	h.with(func(now int64, pool *pool) { pool.release(now) })
	if err := h.sendBack(ctx); err != nil {
		return err
	}
	return do()
}

// sendBack gives back to the store all that the pool has given back.
func (h *leases) sendBack(ctx context.Context) error {
	var back []refund
	h.with(func(_ int64, pool *pool) { back, pool.back = pool.back, nil })
	for i := range back {
		if err := h.limiter.do(ctx, changes(change{refund: &back[i]})); err != nil {
			return err
		}
	}
	return nil
}

// free returns how many permits of the pool no caller has been promised.
func (h *leases) free() (free int64) {
	if h != nil {
		h.with(func(_ int64, pool *pool) { free = max(0, pool.free()) })
	}
	return free
}

// stored returns how many permits of the pool are ready.
func (h *leases) stored() float64 {
	if h == nil {
		return 0
	}
	return h.local.Stored()
}

// nextFree returns when a caller would get a permit of the pool, if it has any.
func (h *leases) nextFree() (at time.Time, ok bool) {
	if h == nil {
		return at, false
	}
	h.with(func(now int64, pool *pool) {
		pool.advance(now)
		ok = pool.free() > 0
	})
	return h.local.NextFree(), ok
}
