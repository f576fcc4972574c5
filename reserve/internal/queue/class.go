package queue

import (
	"time"

	"github.com/nextfree/pace/reserve"
)

// A Class is fair.Class.
type Class struct {
	Name     string
	Priority int
	Weight   float64
	MaxAge   time.Duration
	Limit    reserve.Reserver
	MaxQueue int
}

// Own returns the class's own limits.
func (c Class) Own() []Limit {
	if c.Limit == nil {
		return nil
	}
	limits := Limits(c.Limit)
	for i := range limits {
		limits[i].Own = true
	}
	return limits
}

// Counts are those of a class: see fair.ClassSnapshot.
type Counts struct {
	Waiting, Tenants            int
	Granted, Refused, GivenBack uint64
	LongestWait                 time.Duration
}

type class struct {
	Class
	number int
	share
	aged    share // of requests that have waited for MaxAge; it has no level if MaxAge is not set
	waiting list  // in the order in which they came
	asked   asked // by those

	virtual      float64
	period       uint64             // how often no request waited any more
	tenants      map[string]*tenant // that wait, or whose tag is above virtual
	nameless     tenant
	peak         int // of tenants since the map was made
	active, idle heapOf[float64, tenant]

	lapse  heapOf[int64, Place] // places that must go by a time
	counts Counts
}

// asked is what places ask of the first limits of their options, then of their own permits, then their number.
type asked [tracked + 2]int64

const (
	tracked   = 4
	ofPermits = tracked
	ofPlaces  = tracked + 1
)

// counted is at most 2^40 permits, so that sums of them don't overflow.
func counted(permits int) int64 { return min(int64(permits), 1<<40) }

// count counts a place, or no longer (sign -1).
func (c *class) count(p *Place, sign int64) {
	limits := p.Options[0].Limits
	for i := range min(len(limits), tracked) {
		if sign > 0 {
			p.counted[i] = counted(limits[i].permits(p))
		}
		c.asked[i] += sign * p.counted[i]
	}
	c.asked[ofPermits] += sign * counted(p.Permits)
	c.asked[ofPlaces] += sign
	p.tenant.permits += sign * counted(p.Permits)
}

// old returns the oldest request if it has waited for MaxAge, or nil.
func (c *class) old(now int64) *Place {
	if c.aged.level == nil {
		return nil
	}
	p := c.waiting.head
	if p != nil && now-p.rank.Arrived < int64(c.MaxAge) {
		p = nil
	}
	c.aged.wait(p != nil)
	return p
}

func (c *class) shareOf(p *Place) *share {
	if p.wasAged {
		return &c.aged
	}
	return &c.share
}

// turn returns the turn of a class with requests.
func (c *class) turn(now int64) turn {
	if p := c.old(now); p != nil {
		return turn{p, c.Priority + 1, c.aged.start}
	}
	return turn{c.active[0].of.line.head, c.Priority, c.share.start}
}

// first returns the turn of the first request that others don't pass.
func (c *class) first(now int64) turn {
	if c.waiting.length == 0 {
		return turn{}
	}
	t := c.turn(now)
	switch t.place.pass {
	case passOne:
		t.place = c.firstBehind()
	case passClass:
		t.place = nil
	}
	return t
}

// firstBehind is first if some are passed.
func (c *class) firstBehind() *Place {
	var first turn
	for _, n := range c.active {
		p := n.of.line.head
		for p != nil && p.pass == passOne {
			p = n.of.line.next(p)
		}
		if p != nil && p.pass == passClass {
			return nil
		}
		if t := (turn{p, 0, n.of.start}); t.before(first) {
			first = t
		}
	}
	return first.place
}

func (c *class) push(p *Place) {
	t := c.known(p.Tenant)
	if t == nil {
		t = c.newTenant(p.Tenant, c.virtual)
	}
	if p.Weight == 0 {
		p.Weight = 1
	}
	p.tenant, t.weight = t, p.Weight
	t.line.insert(p)
	c.waiting.insert(p)
	c.count(p, 1)
	c.keep(t)
}

func (c *class) known(name string) *tenant {
	if name != "" {
		return c.tenants[name]
	}
	if c.nameless.node.heap == nil {
		return nil
	}
	return &c.nameless
}

func (c *class) newTenant(name string, start float64) *tenant {
	t := &c.nameless
	if name != "" {
		if c.tenants == nil {
			c.tenants, c.peak = map[string]*tenant{}, 0
		}
		t = new(tenant)
		c.tenants[name] = t
		c.peak = max(c.peak, len(c.tenants))
	}
	t.name, t.period, t.line.kind, t.node.of = name, c.period, 1, t
	t.begin(start)
	return t
}

// keep lists a tenant as waiting, as owing, or not at all.
func (c *class) keep(t *tenant) {
	t.node.key = t.start
	if p := t.line.head; p != nil {
		t.node.number = p.rank.Number
		c.active.put(&t.node)
	} else if t.start > c.virtual {
		c.idle.put(&t.node)
	} else {
		t.node.leave()
		delete(c.tenants, t.name)
	}
}

func (c *class) charge(p *Place) {
	p.tenant.charge(&c.virtual, cost(p.Permits, p.Weight))
	p.tenantStretch = p.tenant.stretch
	for len(c.idle) > 0 && c.idle[0].key <= c.virtual {
		c.keep(c.idle[0].of)
	}
}

// settle corrects a tenant's tag. Without waiting requests it owes what is above virtual time.
func (c *class) settle(p *Place, more float64) {
	t := c.known(p.Tenant)
	if t == nil {
		if more <= 0 || c.waiting.length == 0 {
			return
		}
		start := 0.0
		if p.tenant.period == c.period {
			start = p.tenant.start // it was forgotten because this was not above virtual time
		}
		t = c.newTenant(p.Tenant, start)
	}
	stretch := t.stretch - 1 // another one
	if p.tenant == t {
		stretch = p.tenantStretch
	}
	t.settle(stretch, more)
	c.keep(t)
}

// kept is how many tenants a reused map may have held.
const kept = 64

func (c *class) remove(now int64, p *Place) {
	c.count(p, -1)
	c.waiting.remove(p)
	p.tenant.line.remove(p)
	c.keep(p.tenant)
	c.old(now)
	if c.waiting.length > 0 {
		return
	}
	c.share.wait(false)
	c.virtual = 0 // no tenant owes anything
	c.period++
	c.nameless.node.leave()
	if c.peak > kept {
		c.tenants, c.idle, c.active = nil, nil, nil
		return
	}
	clear(c.tenants)
	clear(c.idle)
	c.idle = c.idle[:0]
}

// before returns the permits of the class's requests that go before p: exactly, where each tenant's are of one size.
func (c *class) before(p *Place) float64 {
	own := p.tenant
	mine := own.before(p)
	before, tag := float64(mine), own.start+float64(mine)/own.weight
	if len(c.active) > 1 {
		for _, n := range c.active {
			if t := n.of; t != own {
				ties := n.number < p.rank.Number
				before += float64(t.permits) * t.part(tag, ties, t.permits, int64(t.line.length), t.weight)
			}
		}
	}
	return before
}
