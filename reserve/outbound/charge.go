package outbound

import (
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

type keys struct{ limit, key any }

type ask struct {
	By      reserve.Reserver
	Permits int                  // at least 1
	Held    *reserve.Reservation // nil: not granted
}

// A charge is what an attempt asks of one limit: permits, or a place in flight.
type charge struct {
	ask
	limit  *limit
	key    any
	state  *limitState
	rate   *controller  // nil: not adaptive
	room   *room        // nil: the limit has a rate
	place  *queue.Place // its shares are of this limit's permits; nil: of another's, or there are no classes
	said   *reply.Limit // by the response; nil: nothing
	chance bool         // a refusal would be by chance
	named  bool         // by the response only: the call was not paced by it
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
	a.room = a.roomOf()
}

// sit adds a limit on calls in flight, with places of its own or of the transport's (nil).
func (c *call) sit(l *limit, key any, places reserve.Reserver) {
	a := charge{ask: ask{By: places, Permits: 1}, limit: l, key: key}
	if places == nil {
		c.watchState(&a)
		a.By = a.state.by
	}
	c.seats = append(c.seats, a)
}

// id tells limits and keys of a line's calls apart.
func (a *charge) id() any {
	if a.state == nil {
		return a.By
	}
	return a.state
}

func (c *call) settled(a *charge, used int) {
	a.Held.Settle(used)
	a.correct(used)
	if hook := c.t.hooks.Settled; hook != nil {
		hook(c.request, a.name(), a.Permits, used)
	}
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
