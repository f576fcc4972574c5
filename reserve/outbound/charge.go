package outbound

import (
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// asking is what a call asks of its limits.
type asking struct {
	way
	ways  []way    // one for each upstream; nil: there are none, and only one
	named []charge // those that the response concerns, if it names limits that the call was not paced by; nil: charges
	keys  any      // of all limits, a keySet: calls with the same keys have one line

	states    []*limitState // of the limits that the call uses
	few       [few]charge
	fewStates [few]*limitState
}

// few is how many limits a call may have without an allocation for them.
const few = 2

// keys is a limit and one of its keys.
type keys struct{ limit, key any }

// A keySet is a linked list of limits and keys that can be compared.
type keySet struct {
	limit       *limit
	key, others any
}

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
	room   *room        // nil: the limit has a rate that is not being found
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

// charge adds a limit to those of the call.
func (c *call) charge(l *limit, key any, by reserve.Reserver, permits int) {
	c.charges = append(c.charges, charge{ask: ask{By: by, Permits: permits}, limit: l, key: key})
	c.use(&c.charges[len(c.charges)-1])
}

// use finds the state of a charge's limit and key.
func (c *call) use(a *charge) {
	if c.watchState(a); a.limit.upstream {
		return
	}
	if adaptable, ok := a.By.(tunable); ok && c.t.adaptive {
		a.rate = c.t.controllerOf(adaptable, a)
		a.state.rate.Store(a.rate)
	}
	a.room = c.t.roomOf(a)
}

// identify sets the keys of the call's line.
func (c *call) identify() {
	c.keys = nil
	for i, w := range c.served {
		w.identify(c)
		if u := c.t.upstreams; u != nil && u.all[i].Prepare == nil {
			return // the others have the same
		}
	}
}

func (w *way) identify(c *call) {
	for i := range w.seats { // a full host stops no other
		s := &w.seats[i]
		if c.keys = (keySet{nil, keys{s.of, s.key}, c.keys}); s.limit != nil {
			c.keys = keySet{s.limit, s.at.Places, c.keys}
		}
	}
	for i := range w.charges {
		c.keys = keySet{w.charges[i].limit, w.charges[i].key, c.keys}
	}
}

func (c *call) settled(a *charge, used int) {
	a.Held.Settle(used)
	c.correct(a, used)
	c.t.hooks.settled(c.request, a.name(), a.Permits, used)
}

// keep leaves a charge at its estimate, and charges what the limit could not hold at once.
func (a *charge) keep() {
	if a.Held.Permits() < a.Permits {
		a.Held.Settle(a.Permits)
	}
}

// lose settles one charge of an attempt without a response, at its estimate unless the limit knows better.
func (c *call) lose(a *charge) {
	a.Held.End()
	if a.limit.lost != nil {
		if n, known := a.limit.lost(c.subject); known {
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
