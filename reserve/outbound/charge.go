package outbound

import (
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

type asking struct {
	way
	ways  []way    // one for each upstream; nil: no upstreams
	named []charge // what the response concerns, if it names other limits; nil: charges
	keys  any      // a keySet: calls with the same keys have one line

	states    []*limitState
	few       [few]charge
	fewStates [few]*limitState
}

// few is how many limits a call may have without an allocation.
const few = 2

type keys struct{ limit, key any }

// A keySet is a comparable list of limits and keys.
type keySet struct {
	limit       *limit
	key, others any
}

type ask struct {
	By      reserve.Reserver
	Permits int // at least 1
	Held    *reserve.Reservation
}

type charge struct {
	ask
	limit  *limit
	key    any
	rate   *controller  // nil: not adaptive
	room   *room        // nil: the limit has a rate
	said   *reply.Limit // by the response; nil: nothing
	chance bool         // a refusal would be by chance
	state  *limitState
	named  bool // by the response only: the call was not paced by it
}

func (a *charge) name() string {
	if b, ok := a.key.(bucket); ok {
		return b.key.Name
	}
	return a.limit.name
}

func (c *call) charge(l *limit, key any, by reserve.Reserver, permits int) {
	c.charges = append(c.charges, charge{ask: ask{By: by, Permits: permits}, limit: l, key: key})
	c.use(&c.charges[len(c.charges)-1])
}

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
	for i := range w.seats { // so that a full host stops no other
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

func (c *call) lose(a *charge) {
	if a.limit.lost != nil {
		if n, known := a.limit.lost(c.subject); known {
			c.settled(a, n)
			return
		}
	}
	a.keep()
}

func (c *call) concerned() []charge {
	if c.named != nil {
		return c.named
	}
	return c.charges
}
