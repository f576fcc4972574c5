package outbound

import (
	"time"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve/fair"
)

// soon is how early a call is granted, so that waking late loses nothing.
const soon = 50 * time.Millisecond

func (ws ways) lineKey() (k lineKey) {
	n := 0
	for _, w := range ws.served {
		for _, list := range []charges{w.charges, w.seats} { // a full host stops no other
			for a := range list.all {
				k.add(n, a.id())
				n++
			}
		}
		if w.upstream != nil && w.upstream.Prepare == nil {
			break // the others have the same
		}
	}
	return k
}

// newLine returns a line for calls like this one. Only a kept line watches its limits: watchers stay there.
func (c *call) newLine(kept bool) *line {
	t := c.t
	var watched [][]queue.Option
	if kept || t.upstreams != nil || !c.ways[0].local() {
		watched = append(watched, c.place.Options)
	}
	set := queue.Settings{Clock: t.clock, Slack: soon}
	if u := t.upstreams; u != nil {
		set.Prefers, set.Granted = u.sticky.Prefers, u.sticky.Granted
	}
	if t.classes != nil {
		set.Slack = 0 // a more urgent call may come
		set.Full = func(class int) error {
			return &fair.FullError{Class: t.classes[class].Name, MaxQueue: t.classes[class].MaxQueue}
		}
	}
	for _, c := range t.classes {
		set.Classes = append(set.Classes, queue.Class(c))
	}
	return &line{Queue: queue.New(set, watched...)}
}

func (w *way) local() bool {
	return w.charges.find(func(a *charge) bool { return !a.of.Traits().Tunable }) == nil
}

// ask puts what the call asks into a place, and returns the line for it, to be left.
func (c *call) ask() (l *line, err error) {
	place, again := &c.first, c.place != nil
	if again { // the queue may still use the first
		place = new(queue.Place)
	}
	c.place = place
	c.place.Rank, c.place.Permits = &c.rank, 1
	if c.t.classes != nil {
		if c.place.Class, c.place.Tenant, err = c.classOf(); err != nil {
			return nil, err
		}
	}
	c.place.Options = c.only[:]
	if again || len(c.ways) > 1 {
		c.place.Options = make([]queue.Option, len(c.ways))
	}
	for i, w := range c.ways.served {
		c.option(i, w, again)
	}
	if c.t.upstreams != nil {
		c.choices()
	}
	return c.t.lines.enter(c.ways.lineKey(), c.newLine), nil
}

// option makes an option of the place: the way to an upstream.
func (c *call) option(i int, w *way, again bool) {
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

// asks appends an option's limits: charges, seats, what spaces calls, gates (the probe of an unknown rate, a room, a
// pause), and last the class's limits, which are Own.
func (c *call) asks(w *way, limits []queue.Limit) []queue.Limit {
	for a := range w.charges.all {
		limits = append(limits, queue.Limit{By: a.of, Permits: a.Permits, Clip: true})
	}
	for a := range w.seats.all {
		limits = append(limits, queue.Limit{By: a.of, Permits: 1})
	}
	for a := range w.charges.all {
		if a.even != nil {
			a.evenAt = len(limits)
			limits = append(limits, queue.Limit{By: lim.Of(a.even), Permits: a.Permits})
		}
	}
	w.gates = len(limits)
	for a := range w.charges.all {
		limits = a.gates(limits)
	}
	if w.upstream != nil && !w.charges[0].limit.upstream {
		limits = append(limits, queue.Limit{By: lim.Of(w.upstream.pause), Permits: 1})
	}
	if c.t.classes != nil {
		limits = append(limits, queue.Class(c.t.classes[c.place.Class]).Own()...)
	}
	return limits
}

func (a *charge) gates(limits []queue.Limit) []queue.Limit {
	if a.rate != nil && a.rate.is((*adapt.Rate).Probes) {
		limits = append(limits, queue.Limit{By: lim.Of(a.rate.probe), Permits: 1})
	}
	if room := a.roomOf(); room != nil {
		limits = append(limits, queue.Limit{By: room.places, Permits: 1})
	}
	if a.state.pause != nil {
		limits = append(limits, queue.Limit{By: lim.Of(a.state.pause), Permits: 1})
	}
	return limits
}

// renew updates the estimates of the first call, or returns an error if its limits have changed.
func (c *call) renew() error {
	for o, w := range c.ways.served {
		if c.changed(w) {
			return errChanged
		}
		for i := range w.charges {
			a := &w.charges[i]
			if a.limit.again == nil {
				continue
			}
			a.Permits = max(1, a.limit.again(w.subject))
			if c.place.SetPermits(o, i, a.Permits); a.even != nil {
				c.place.SetPermits(o, a.evenAt, a.Permits)
			}
		}
	}
	return nil
}

func (c *call) changed(w *way) bool {
	return c.t.learned.plan(w.subject, c.t.alone(w), c.t.watch) != w.planned || w.changed(c.t.limits)
}
