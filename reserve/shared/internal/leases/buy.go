package leases

import (
	"cmp"
	"context"
	"math"

	"github.com/nextfree/pace/internal/saturate"
)

// longest is what is counted to, in nanoseconds: 291 years.
const longest = 9.2e18

// buy asks the store for the permits that callers wait for, and for what the process is going to use. The caller, whose
// request is the first in the line, must have the turn. If nothing was bought the answer is the request's.
func (b *Buyer) buy(ctx context.Context, r Request) (a Answer, bought bool, err error) {
	p := &Purchase{MaxWait: r.MaxWait, Deadline: r.Deadline, By: cmp.Or(r.By, r.Deadline)}
	beside := int64(0) // permits that are not for the caller
	b.with(func(now int64, pool *pool) {
		pool.advance(now)
		free := pool.free()
		p.Permits = amount(max(b.line.Load(), b.goal(now, pool)) - free)
		beside = int64(p.Permits) - max(0, int64(r.Permits)-free)
		p.takeAlong(pool)
	})
	if p.Permits < 1 { // a caller has given back meanwhile
		return Answer{}, true, nil
	}
	rest := int64(0)
	if curve, upfront := b.seller.Terms(); upfront { // the request is refused by its own time, not by that of the rest
		rest = int64(min(float64(beside)*curve.Interval, longest))
		p.MaxWait, p.Deadline = saturate.Add(p.MaxWait, rest), saturate.Add(p.Deadline, rest)
	}
	b.purchase(ctx, p, int64(p.Permits)-beside)
	switch {
	case p.Err != nil:
		return Answer{Charged: p.Charged}, false, p.Err
	case p.Granted:
		return Answer{}, true, nil
	}
	b.settled(&outcome{ready: saturate.Add(b.seller.Now(), p.Soonest)})
	return b.refuse(r, p.Wait-rest), false, nil
}

// prefetch buys before the permits are used up, unless a caller is buying already.
func (b *Buyer) prefetch() {
	select {
	case b.turn <- struct{}{}:
	default:
		return
	}
	// There is no caller for a client's panic to go to. Those in the line have their error, and the circuit knows.
	defer b.swallow()
	defer func() { <-b.turn }()
	p := &Purchase{MaxWait: min(2*b.horizon, b.maxWait), Deadline: saturate.Never}
	b.with(func(now int64, pool *pool) {
		pool.advance(now)
		p.Permits = amount(b.goal(now, pool) - pool.free())
		p.takeAlong(pool)
	})
	if p.Permits > 0 {
		b.purchase(context.Background(), p, 0)
	}
}

// amount bounds a number of permits, for a machine of 32 bits.
func amount(permits int64) int { return int(min(permits, math.MaxInt32)) }

// takeAlong adds a refund of what an expired lease had left.
func (p *Purchase) takeAlong(pool *pool) {
	if n := len(pool.back); n > 0 && p.Permits > 0 {
		back := pool.back[n-1] // that place is soon another's
		p.Back = &back
		pool.back = pool.back[:n-1]
	}
}

// purchase asks for a lease, of which own permits are the caller's, and adds it to the pool if it is granted.
func (b *Buyer) purchase(ctx context.Context, p *Purchase, own int64) {
	defer func() { // whether the client returns or panics
		if p.Err == nil || !p.Common {
			return
		}
		o := &outcome{err: p.Err}
		if p.Charged { // the caller's own are used already
			o.charged.Store(int64(p.Permits) - own)
		}
		b.settled(o)
	}()
	b.seller.Buy(ctx, p)
	if p.Err != nil || !p.Granted {
		return
	}
	b.with(func(now int64, pool *pool) {
		lot := p.Lot
		lot.Begin, lot.End = lot.Begin+b.ahead, saturate.Add(lot.End, b.ahead)
		l := pool.add(now, lot)
		b.newest.Store(l)
		pool.low = math.MaxInt64
		if goal := b.goal(now, pool); goal > 0 {
			pool.low = pool.bought - goal/2
		}
		b.lookAgain(l.expires - now)
	})
}
