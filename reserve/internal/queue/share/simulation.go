package share

import "github.com/nextfree/pace/reserve/internal/queue"

// A simulation goes through the waiting requests in the order in which they will go.
type simulation struct {
	classes []simulated
	now     int64
}

type simulated struct {
	*class
	start, agedStart float64
	tenants          []tenant
	active           queue.Heap[float64, tenant]
	old              *queue.Place // the oldest one that has not gone, if it is aged
}

func (o *Order) simulate(now int64) *simulation {
	s := &simulation{now: now}
	for _, c := range o.classes {
		if c.waiting.Len() > 0 {
			s.classes = append(s.classes, simulated{class: c})
		}
	}
	for i := range s.classes {
		s.classes[i].copy(now)
	}
	return s
}

func (c *simulated) copy(now int64) {
	c.old, c.start, c.agedStart = c.class.old(now), c.share.start, c.aged.start
	c.tenants = make([]tenant, len(c.class.active))
	c.active = make(queue.Heap[float64, tenant], 0, len(c.tenants))
	for i, n := range c.class.active { // in this order none moves
		t := &c.tenants[i]
		*t = *n.Of
		t.node = queue.Node[float64, tenant]{Key: n.Key, Number: n.Number, Of: t}
		c.active.Put(&t.node)
	}
}

func (s *simulation) next() *queue.Place {
	var first turn
	var from *simulated
	for i := range s.classes {
		c := &s.classes[i]
		if len(c.active) == 0 {
			continue
		}
		t := turn{c.active[0].Of.line.Head(), c.Priority, c.start}
		if c.old != nil {
			t = turn{c.old, c.Priority + 1, c.agedStart}
		}
		if t.before(first) {
			first, from = t, c
		}
	}
	if from != nil {
		from.grant(s.now, first.place)
	}
	return first.place
}

func (c *simulated) grant(now int64, p *queue.Place) {
	price := cost(p.Permits, c.Weight)
	t := c.active[0].Of
	if p == c.old {
		c.agedStart += price
		t = &c.tenants[of(p).tenant.node.Index()] // the oldest of a class is the first of its tenant
		if c.old = c.waiting.Next(p); c.old != nil && !c.isOld(now, c.old) {
			c.old = nil
		}
	} else {
		c.start += price
	}
	t.start += cost(p.Permits, t.weight)
	if t.line.Drop(); t.line.Head() == nil {
		t.node.Leave()
		return
	}
	t.node.Key, t.node.Number = t.start, t.line.Head().Ranked().Number
	c.active.Put(&t.node)
}
