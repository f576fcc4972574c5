package outbound

import (
	"errors"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/adapt"
	"github.com/nextfree/pace/reserve/internal/queue"
)

// errChanged tells a waiting call that its limits have changed.
var errChanged = errors.New("outbound: the limits of the call have changed")

type turn struct {
	line   *line
	first  queue.Place
	place  *queue.Place // first, or a new one after the first ask
	rank   queue.Rank
	only   [1]queue.Option
	limits [few]queue.Limit

	gates []*reserve.Reservation // the probes, rooms and pauses, held until the response
}

func (c *call) admit() error {
	c.begin = c.t.now()
	if err := c.wait(); err != nil {
		return c.blame(err)
	}
	c.take()
	c.sent = c.t.now()
	for i := range c.charges {
		a := &c.charges[i]
		a.Held.Begin()
		a.holdBlock(c.sent)
		if a.limit.used == nil {
			a.keep()
		}
		if a.rate != nil {
			a.rate.change(func(rate *adapt.Rate) { rate.Sent(c.sent, float64(a.Permits)) })
		} else {
			a.hold(c.sent)
		}
	}
	return nil
}

func (c *call) wait() error {
	counted := c.states
	for _, s := range counted {
		s.waiting.Add(1)
	}
	w := c.watch()
	defer func() {
		for _, s := range counted {
			s.waiting.Add(-1)
		}
		w.end()
	}()
	if err := c.backOff(); err != nil {
		return err
	}
	for maxWait, begin := c.t.maxWait, c.t.now(); ; {
		err := c.acquire(maxWait)
		if err == nil {
			c.phase = granted // before a hook, which may panic
		}
		if !errors.Is(err, errChanged) {
			return err
		}
		if err = c.chargeWays(); err != nil {
			return err
		}
		if c.t.maxWait < reserve.Forever {
			maxWait = max(0, c.t.maxWait-c.t.now().Sub(begin))
		}
	}
}

func (c *call) acquire(maxWait time.Duration) error {
	if err := c.ask(); err != nil {
		return err
	}
	defer c.t.lines.leave(c.line)
	ctx := c.request.Context()
	if err := c.line.Enter(ctx, c.place, maxWait); err != nil {
		return err
	}
	return c.place.Wait(ctx)
}

func (c *call) ask() (err error) {
	place, again := &c.first, c.place != nil
	if again { // the queue may still use the first
		place = new(queue.Place)
	}
	c.place = place
	c.place.Rank, c.place.Permits = &c.rank, 1
	if c.t.classes != nil {
		if c.place.Class, c.place.Tenant, err = c.classOf(); err != nil {
			return err
		}
	}
	c.place.Options = c.only[:]
	if again || len(c.ways) > 1 {
		c.place.Options = make([]queue.Option, len(c.ways))
	}
	for i, w := range c.served {
		if a := w.dearest(); a != nil {
			c.place.Permits = max(c.place.Permits, a.Permits)
		}
		if c.t.learned.alone || c.t.learned.any.Load() || w.changes() {
			c.place.Renew = c.renew
		}
		limits := c.limits[:0]
		if again || i > 0 {
			limits = nil
		}
		c.place.Options[i].Limits = c.asks(w, limits)
	}
	if c.t.upstreams != nil {
		c.choices()
	}
	c.line = c.t.lines.enter(c)
	return nil
}

// asks appends an option's limits: charges, seats, gates (the probe of an unknown rate, a room, a pause), and
// last the class's limits, which are Own.
func (c *call) asks(w *way, limits []queue.Limit) []queue.Limit {
	for i := range w.charges {
		a := &w.charges[i]
		limits = append(limits, queue.Limit{By: a.By, Permits: a.Permits, Clip: true})
	}
	for i := range w.seats {
		limits = append(limits, queue.Limit{By: w.seats[i].By, Permits: 1})
	}
	for i := range w.charges {
		a := &w.charges[i]
		if a.rate != nil && a.rate.unknown() {
			limits = append(limits, queue.Limit{By: a.rate.probe, Permits: 1})
		}
		if a.room != nil {
			limits = append(limits, queue.Limit{By: a.room.places, Permits: 1})
		}
		if a.state.pause != nil {
			limits = append(limits, queue.Limit{By: a.state.pause, Permits: 1})
		}
	}
	if w.upstream != nil && !w.charges[0].limit.upstream {
		limits = append(limits, queue.Limit{By: w.upstream.pause, Permits: 1})
	}
	if c.t.classes != nil {
		limits = append(limits, queue.Class(c.t.classes[c.place.Class]).Own()...)
	}
	return limits
}

// renew updates the estimates of the first call, or returns an error if its limits have changed.
func (c *call) renew() error {
	for o, w := range c.served {
		if c.t.learned.plan(w.subject) != w.planned || w.changed(c.t.limits) {
			return errChanged
		}
		for i := range w.charges {
			if a := &w.charges[i]; a.limit.again != nil {
				a.Permits = max(1, a.limit.again(w.subject))
				c.place.SetPermits(o, i, a.Permits)
			}
		}
	}
	return nil
}

// take hands out the reservations of the call's place, in the order of asks.
func (c *call) take() {
	option := c.place.Option()
	if c.way = &c.ways[option]; c.upstream != nil {
		c.goTo()
	}
	if c.t.classes != nil && len(c.charges) > 0 {
		c.dearest().place = c.place
	}
	n := len(c.charges)
	for i, l := range c.place.Options[option].Limits {
		held := c.place.Held(i)
		switch {
		case i < n:
			c.charges[i].Held = held
		case i < n+len(c.seats):
			c.seats[i-n].Held = held
		case !l.Own:
			c.gates = append(c.gates, held)
		}
	}
}

func (c *call) giveBack() {
	c.place.Cancel()
	for i := range c.seats {
		c.seats[i].Held = nil
	}
	c.gates = nil
}
