package outbound

import (
	"context"
	"errors"
	"time"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
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
		return c.expired(c.blame(err))
	}
	c.take()
	c.sent = c.t.now()
	for i := range c.charges {
		a := &c.charges[i]
		if lim.Begin(a.Held); a.limit.exact {
			lim.End(a.Held) // it counts from here
		}
		a.holdBlock(c.sent)
		if a.limit.used == nil {
			a.keep()
		}
		if a.rate != nil {
			a.rate.change(func(rate *adapt.Rate) { rate.Sent(c.sent, float64(a.Permits)) })
		} else {
			c.t.believes(a, func(told *adapt.Told) { a.inUse = told.Sent(c.sent, float64(a.Permits)) })
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
	ctx, end := c.waiting()
	defer end()
	if err := c.backOff(ctx); err != nil {
		return err
	}
	var old *queue.Place // granted, before the limits changed
	defer func() { giveUp(&old) }()
	begin := c.begin
	if c.backoff > 0 {
		begin = c.t.now()
	}
	for maxWait := c.t.maxWait; ; {
		err := c.acquire(ctx, maxWait, &old)
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

// acquire waits for the call's permits. If its limits change meanwhile, it returns errChanged, and the place that was
// granted in old: that is given up when the next has entered, so that no call behind goes first.
func (c *call) acquire(ctx context.Context, maxWait time.Duration, old **queue.Place) error {
	for _, w := range c.served {
		if w.respaced() { // since the call's last attempt
			return errChanged
		}
	}
	if err := c.ask(); err != nil {
		return err
	}
	defer c.t.lines.leave(c.line)
	err := c.line.Enter(ctx, c.place, maxWait)
	if had := giveUp(old); had && errors.As(err, new(*reserve.WaitError)) {
		return errChanged // its permits may be what was missing
	}
	if err != nil {
		return err
	}
	if err = c.place.Wait(ctx); err != nil {
		return err
	}
	w := &c.ways[c.place.Option()]
	if c.place.Renew != nil && c.changed(w) || w.respaced() { // after the last Renew, before the grant
		*old = c.place
		return errChanged
	}
	return nil
}

// giveUp cancels a place, if there is any.
func giveUp(p **queue.Place) bool {
	if *p == nil {
		return false
	}
	(*p).Cancel()
	*p = nil
	return true
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
	seats := n + len(c.seats)
	for i, l := range c.place.Options[option].Limits {
		held := c.place.Held(i)
		switch {
		case i < n:
			c.charges[i].Held = held
		case i < seats:
			c.seats[i-n].Held = held
		case i >= seats+c.spaces() && !l.Own:
			c.gates = append(c.gates, held)
		}
	}
	for i, a := range c.spaced {
		a.Held = together(a.Held, c.place.Held(i))
	}
}
