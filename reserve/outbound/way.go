package outbound

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/nextfree/pace/internal/isnil"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/reserve/internal/queue"
)

// A way is what a call asks of its limits at one upstream, or at the only server.
type way struct {
	subject *http.Request // for the limits; nil: the upstream does not serve it
	charges []charge      // the caller's limits, then learned ones
	own     int           // the number of the caller's
	seats   []seat
	planned plan
	large   bool // a limit is too small for the call, and another way's are not
}

func (c *call) prepare() error {
	c.subject = c.request
	u := c.t.upstreams
	if u == nil {
		return c.chargeWay(0, c.few[:0])
	}
	c.refusedBy, c.ways = make([]bool, len(u.all)), make([]way, len(u.all))
	served := false
	for i, own := range u.all {
		if c.ways[i].subject = c.request; own.Prepare != nil {
			c.ways[i].subject = own.Prepare(c.caller)
		}
		served = served || c.ways[i].subject != nil
	}
	if !served {
		return valueError("the request", c.request.URL, "one that an upstream serves")
	}
	return c.chargeWays()
}

func (c *call) chargeWays() error {
	for i := range c.ways {
		if c.way = c.ways[i]; c.subject == nil {
			continue
		}
		if err := c.chargeWay(i, nil); err != nil {
			return err
		}
		c.ways[i] = c.way
	}
	return nil
}

func (c *call) chargeWay(member int, room []charge) error {
	t, r := c.t, c.subject
	c.charges, c.seats = room, nil
	for _, f := range t.inFlight {
		if f.cost(r) > 0 {
			c.seats = append(c.seats, seat{of: f, key: f.key(r)})
		}
	}
	for i := range t.limits {
		l := &t.limits[i]
		n := l.cost(r)
		switch {
		case l.upstream:
			if own := t.upstreams.all[member]; own.limited || own.Prepare == nil {
				c.charge(l, member, own.By, max(1, n)) // it has to go to one of them
			}
		case n > 0:
			if err := c.chargeLimit(l, n); err != nil {
				return err
			}
		}
	}
	if u := t.upstreams; u != nil && len(c.charges) == 0 {
		c.charge(&u.limit, member, u.all[member].By, 1)
	}
	c.own = len(c.charges)
	c.plan()
	return nil
}

func (c *call) chargeLimit(l *limit, permits int) error {
	key, by := l.scope(c.subject)
	if isnil.Value(by) {
		return valueError("the limiter of "+fmt.Sprint(key), nil, "a Reserver")
	}
	if p, ok := by.(*queue.Places); ok {
		c.seats = append(c.seats, seat{limit: l, at: &places{Places: p}})
		return nil
	}
	c.charge(l, key, by, permits)
	return nil
}

// errChanged tells a waiting call that its limits have changed.
var errChanged = errors.New("outbound: the limits of the call have changed")

func (c *call) replan(err error) error {
	switch {
	case err == errMoved && c.ways == nil:
		c.plan()
		return nil
	case c.ways == nil:
		leave(c.seats)
		return c.chargeWay(0, nil)
	}
	c.leaveWays()
	return c.chargeWays()
}

func (c *call) served(yield func(int, *way) bool) {
	if c.ways == nil {
		yield(0, &c.way)
		return
	}
	for i := range c.ways {
		if c.ways[i].subject != nil && !yield(i, &c.ways[i]) {
			return
		}
	}
}

func (c *call) leaveWays() {
	for i := range c.ways {
		leave(c.ways[i].seats)
	}
}

func (c *call) choose(member int) {
	c.way = c.ways[member]
	c.charges = append([]charge(nil), c.charges...) // it may go there again
	c.seats = append([]seat(nil), c.seats...)
	for i := range c.seats {
		c.ways[member].seats[i].moved()
	}
	c.leaveWays()
}

func (w *way) changed(limits []limit) bool {
	for i := range w.seats {
		if l := w.seats[i].limit; l != nil && l.cost(w.subject) < 1 {
			return true
		}
	}
	i := 0
	for k := range limits {
		l := &limits[k]
		if i < w.own && w.charges[i].limit == l {
			i++
		} else if l.again != nil && l.cost(w.subject) > 0 && !w.sitsAt(l) {
			return true
		}
	}
	return false
}

func (w *way) sitsAt(l *limit) bool {
	for i := range w.seats {
		if w.seats[i].limit == l {
			return true
		}
	}
	return false
}

// fits reports whether the way's limiters can ever hold the call's cost.
func (w *way) fits() bool {
	for i := range w.charges {
		if by, ok := w.charges[i].By.(*reserve.Limiter); ok {
			if most := (*engine.Limiter)(by).Outlook().Capacity; most >= 1 && float64(w.charges[i].Permits) > most {
				return false
			}
		}
	}
	return true
}

// compare closes ways whose limits are too small for the call, unless all are.
func (c *call) compare() {
	one := false
	for i, w := range c.served {
		w.large = !w.fits()
		one = one || !w.large && !c.refusedBy[i]
	}
	for _, w := range c.served {
		w.large = w.large && one
	}
}

func (w *way) dearest() (most *charge) {
	for i := range w.charges {
		if a := &w.charges[i]; most == nil || a.Permits > most.Permits {
			most = a
		}
	}
	return most
}

func (w *way) recosts() bool {
	for i := range w.charges {
		if w.charges[i].limit.again != nil {
			return true
		}
	}
	for i := range w.seats {
		if w.seats[i].limit != nil {
			return true
		}
	}
	return false
}
