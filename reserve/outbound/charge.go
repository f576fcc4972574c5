package outbound

import (
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// An ask is what a call asks of one limiter, and gets when it is granted.
type ask struct {
	By      reserve.Reserver
	Permits int // at least 1
	Held    *reserve.Reservation
}

// A charge is what a call asks of one limit.
type charge struct {
	ask
	limit  *limit
	key    any
	rate   *controller  // nil: not adaptive
	room   *room        // nil: the limit has a rate
	said   *reply.Limit // what the response says of the limit; nil: nothing
	chance bool         // a refusal would be one by chance
	state  *limitState  // of the limit and key, for Snapshot
	named  bool         // only the response named the limit: the call was not paced by it
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
	c.charges = append(c.charges, charge{ask: ask{By: by, Permits: permits}, limit: l, key: key})
	c.keys = keySet{l, key, c.keys}
	a := &c.charges[len(c.charges)-1]
	c.use(a)
	if adaptable, ok := by.(tunable); ok && c.t.adaptive {
		a.rate = c.t.controllerOf(adaptable, a)
		a.state.rate.Store(a.rate)
	}
	a.room = c.t.roomOf(a)
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

// concerned returns the charges that the response concerns.
func (c *call) concerned() []charge {
	if c.named != nil {
		return c.named
	}
	return c.charges
}
