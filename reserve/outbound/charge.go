package outbound

import (
	"context"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/fifo"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A charge is what a call asks of one limit.
type charge struct {
	*fifo.Limit // the limiter, the permits, and the reservation
	limit       *limit
	key         any
	rate        *controller  // nil: not adaptive
	probe       bool         // the call goes alone, to find out the rate
	said        *reply.Limit // what the response says of the limit; nil: nothing
	chance      bool         // a refusal would be one by chance
	state       *limitState  // of the limit and key, for Snapshot
	named       bool         // only the response named the limit: the call was not paced by it
}

// name returns the limit's name, for hooks: of a learned limit, the server's.
func (a *charge) name() string {
	if b, ok := a.key.(bucket); ok {
		return b.key.Name
	}
	return a.limit.name
}

// few is how many limits a call may have without an allocation for them.
const few = 3

// charge adds a limit to those of the call.
func (c *call) charge(l *limit, key any, by reserve.Reserver, permits int) {
	c.limits = append(c.limits, fifo.Limit{By: by, Permits: permits})
	c.charges = append(c.charges, charge{Limit: &c.limits[len(c.limits)-1], limit: l, key: key})
	c.keys = keySet{l, key, c.keys}
	a := &c.charges[len(c.charges)-1]
	a.state = c.t.stateOf(a, c.request)
	if l.again != nil {
		a.Recount = func() int { return l.again(c.request) }
	}
	if _, ok := by.(pausable); !ok {
		a.Gate = c.t.pauserOf(a)
	}
	if adaptable, ok := by.(tunable); ok && c.t.adaptive {
		a.rate = c.t.controllerOf(adaptable, a)
		a.state.rate.Store(a.rate)
		i := len(c.charges) - 1
		a.Open = func(ctx context.Context) error { return c.charges[i].open(ctx, c) }
	}
}

// settled settles one charge.
func (c *call) settled(a *charge, used int) {
	a.Held.Settle(used)
	c.correct(a, used)
	c.t.hooks.settled(c.request, a.name(), a.Permits, used)
}

// keep leaves a charge at its estimate. If the estimate is more than the limit ever holds at once, only a part was
// reserved, and keep charges the rest.
func (a *charge) keep() {
	if a.Held.Permits() < a.Permits {
		a.Held.Settle(a.Permits)
	}
}

// lose settles one charge of an attempt that got no response: its outcome is not known, so it has cost what it was to
// cost.
func (c *call) lose(a *charge) {
	a.Held.End()
	if a.limit.lost != nil {
		if n, known := a.limit.lost(c.request); known {
			c.settled(a, n)
			return
		}
	}
	a.keep()
}

// endProbes ends the call's probes; the next call probes, if that is still needed.
func (c *call) endProbes() {
	for i := range c.charges {
		if a := &c.charges[i]; a.probe {
			a.probe = false
			a.rate.giveUp()
		}
	}
}

// concerned returns the charges that the response concerns.
func (c *call) concerned() []charge {
	if c.named != nil {
		return c.named
	}
	return c.charges
}
