package share

import "github.com/nextfree/pace/reserve/internal/queue"

type flow struct {
	start float64 // the tag of its next request
	// A stretch begins when the flow was idle and virtual time passed its tag: then it owes nothing.
	stretch uint32
	floor   float64 // the tag at which the stretch began
}

func (f *flow) begin(tag float64) { f.start, f.floor, f.stretch = tag, tag, f.stretch+1 }

// settle corrects the tag after a request of that stretch cost more. Forgiven cost is no credit.
func (f *flow) settle(stretch uint32, more float64) {
	if more >= 0 {
		f.start += more
	} else if stretch == f.stretch {
		f.start = max(f.floor, f.start+more)
	}
}

// dearest is the largest cost: beside a larger tag, rounding would lose the costs of others.
const dearest = 1e12

func cost(permits int, weight float64) float64 {
	return max(-dearest, min(float64(permits)/weight, dearest))
}

func charge(virtual *float64, f *flow, cost float64) {
	*virtual = max(*virtual, f.start)
	f.start += cost
}

type level struct {
	virtual float64
	waiting int // shares
	shares  []*share
}

// A share is a class's part in a level.
type share struct {
	flow
	level *level
	waits bool
}

func (s *share) wait(waits bool) {
	if s.waits == waits {
		return
	}
	s.waits = waits
	l := s.level
	if waits {
		l.waiting++
		if s.start <= l.virtual {
			s.begin(l.virtual)
		}
		return
	}
	if l.waiting--; l.waiting == 0 { // no class owes anything
		l.virtual = 0
		for _, other := range l.shares {
			other.begin(0)
		}
	}
}

type class struct {
	Class
	number int
	share
	aged    share      // of requests that have waited for MaxAge; it has no level if MaxAge is not set
	waiting queue.FIFO // in the order in which they came

	virtual      float64
	period       uint64             // how often no request waited any more
	tenants      map[string]*tenant // that wait, or whose tag is above virtual
	peak         int                // of tenants since the map was made
	active, idle queue.Heap[float64, tenant]

	counts Counts
}

// A tenant is a flow of a class, during one stretch.
type tenant struct {
	flow
	name   string
	weight float64
	period uint64     // of the class, to which the tag belongs
	line   queue.List // its requests
	node   queue.Node[float64, tenant]
}

// old returns the oldest request if it has waited for MaxAge, or nil.
func (c *class) old(now int64) *queue.Place {
	if c.aged.level == nil {
		return nil
	}
	p := c.waiting.Head()
	if p != nil && !c.isOld(now, p) {
		p = nil
	}
	c.aged.wait(p != nil)
	return p
}

func (c *class) isOld(now int64, p *queue.Place) bool {
	return c.aged.level != nil && now-p.Ranked().Arrived >= int64(c.MaxAge)
}

func (c *class) shareOf(e *Entry) *share {
	if e.wasAged {
		return &c.aged
	}
	return &c.share
}

// first returns the first request that others don't pass.
func (c *class) first(now int64) turn {
	if c.waiting.Len() == 0 {
		return turn{}
	}
	t := turn{c.active[0].Of.line.Head(), c.Priority, c.share.start}
	if p := c.old(now); p != nil {
		t = turn{p, c.Priority + 1, c.aged.start}
	}
	switch t.place.Passed() {
	case queue.PassOne:
		t.place = c.firstBehind()
	case queue.PassGroup:
		t.place = nil
	}
	return t
}

// firstBehind is first if some are passed.
func (c *class) firstBehind() *queue.Place {
	var first turn
	for _, n := range c.active {
		p := n.Of.line.Head()
		for p != nil && p.Passed() == queue.PassOne {
			p = n.Of.line.Next(p)
		}
		if p != nil && p.Passed() == queue.PassGroup {
			return nil
		}
		if t := (turn{p, 0, n.Of.start}); t.before(first) {
			first = t
		}
	}
	return first.place
}

func (c *class) push(e *Entry) {
	t := c.tenants[e.name]
	if t == nil {
		t = c.newTenant(e.name, c.virtual)
	}
	e.tenant, t.weight = t, e.weight
	t.line.Insert(&e.Place)
	c.keep(t)
}

func (c *class) newTenant(name string, start float64) *tenant {
	if c.tenants == nil {
		c.tenants, c.peak = map[string]*tenant{}, 0
	}
	t := &tenant{name: name, period: c.period, line: queue.List{Kind: 1}}
	t.node.Of = t
	t.begin(start)
	c.tenants[name] = t
	c.peak = max(c.peak, len(c.tenants))
	return t
}

// keep lists a tenant as waiting, as owing, or not at all.
func (c *class) keep(t *tenant) {
	t.node.Key = t.start
	if p := t.line.Head(); p != nil {
		t.node.Number = p.Ranked().Number
		c.active.Put(&t.node)
	} else if t.start > c.virtual {
		c.idle.Put(&t.node)
	} else {
		t.node.Leave()
		delete(c.tenants, t.name)
	}
}

func (c *class) charge(e *Entry) {
	charge(&c.virtual, &e.tenant.flow, cost(e.Permits, e.weight))
	for len(c.idle) > 0 && c.idle[0].Key <= c.virtual {
		c.keep(c.idle[0].Of)
	}
}

// settle corrects a tenant's tag. Without waiting requests it owes what is above virtual time.
func (c *class) settle(e *Entry, more float64) {
	t := c.tenants[e.name]
	if t == nil {
		if more <= 0 || c.waiting.Len() == 0 {
			return
		}
		start := 0.0
		if e.tenant.period == c.period {
			start = e.tenant.start // it was forgotten because this was not above virtual time
		}
		t = c.newTenant(e.name, start)
		e.tenant = t
	}
	stretch := uint32(0)
	if e.tenant == t {
		stretch = t.stretch
	}
	t.flow.settle(stretch, more)
	c.keep(t)
}

// kept is how many tenants a reused map may have held.
const kept = 64

func (e *Entry) leave(now int64) {
	c := e.class
	c.waiting.Remove(now, &e.Place)
	e.tenant.line.Delete(&e.Place)
	c.keep(e.tenant)
	c.old(now)
	if c.waiting.Len() > 0 {
		return
	}
	c.share.wait(false)
	c.virtual = 0 // no tenant owes anything
	c.period++
	if c.peak > kept {
		c.tenants, c.idle, c.active = nil, nil, nil
		return
	}
	clear(c.tenants)
	clear(c.idle)
	c.idle = c.idle[:0]
}
