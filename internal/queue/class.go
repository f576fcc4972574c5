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

// Counts are fair.ClassSnapshot.
type Counts struct {
	Class                       string
	Waiting, Tenants            int
	Granted, Refused, GivenBack uint64
	LongestWait                 time.Duration
}

type class struct {
	Class
	order   *order
	flow          // among the classes of its priority
	aged    flow  // of requests that have waited for MaxAge; it has no level if MaxAge is not set
	waiting list  // in the order in which they came
	asked   asked // by those

	of           level              // the tenants
	nameless     *tenant            // of requests without a tenant
	tenants      map[string]*tenant // the others that wait, or whose tag is above virtual
	active, idle heapOf[float64, tenant]

	lapse  heapOf[int64, Place] // places that must go by a time
	counts Counts
}

// A tenant is a flow of a class.
type tenant struct {
	flow
	name    string
	weight  float64
	line    list  // its requests
	permits int64 // of these
	node    node[float64, tenant]
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
func (c *class) old() *Place {
	if c.aged.level == nil {
		return nil
	}
	p := c.waiting.head
	if p != nil && c.order.now-p.rank.Arrived < int64(c.MaxAge) {
		p = nil
	}
	c.aged.wait(p != nil)
	return p
}

func (c *class) flowOf(p *Place) *flow {
	if p.wasAged {
		return &c.aged
	}
	return &c.flow
}

// turn returns the turn of a class with requests.
func (c *class) turn() turn {
	if p := c.old(); p != nil {
		return turn{p, c.Priority + 1, c.aged.start}
	}
	return turn{c.active[0].of.line.head, c.Priority, c.start}
}

// first returns the turn of the first request that others don't pass; none behind one that waits for the class's limit.
func (c *class) first() (t turn) {
	if c.waiting.length == 0 {
		return t
	}
	if t = c.turn(); !t.place.passed {
		return t
	}
	var first turn
	for _, n := range c.active {
		p := n.of.line.head
		for ; p != nil && p.passed; p = n.of.line.next(p) {
			if p.hold.own() {
				return turn{}
			}
		}
		if other := (turn{p, 0, n.of.start}); other.before(first) {
			first = other
		}
	}
	t.place = first.place
	return t
}

func (c *class) push(p *Place) {
	if p.Weight == 0 {
		p.Weight = 1
	}
	t := c.tenantOf(p.Tenant)
	p.tenant, t.weight = t, p.Weight
	c.waiting.insert(p)
	t.line.insert(p)
	c.count(p, 1)
	c.wait(true)
	t.wait(true)
	c.keep(t)
}

func (c *class) tenantOf(name string) *tenant {
	if name == "" {
		return c.nameless
	}
	t := c.tenants[name]
	if t == nil {
		if c.tenants == nil {
			c.tenants = map[string]*tenant{}
		}
		t = c.newTenant(name)
		c.tenants[name] = t
	}
	return t
}

func (c *class) newTenant(name string) *tenant {
	t := &tenant{flow: flow{level: &c.of}, name: name, line: list{kind: 1}}
	t.node.of = t
	return t
}

// keep lists a tenant as waiting, as owing, or not at all.
func (c *class) keep(t *tenant) {
	t.node.key = t.start
	if p := t.line.head; p != nil {
		t.node.number = p.rank.Number
		c.active.put(&t.node)
	} else if t.start > c.of.virtual {
		c.idle.put(&t.node)
	} else if t.node.leave(); t != c.nameless {
		delete(c.tenants, t.name)
	}
}

func (c *class) grant(p *Place) {
	p.wasAged = c.old() == p
	f, t := c.flowOf(p), p.tenant
	p.stretch, p.tenantStretch = f.stretch, t.stretch
	f.charge(cost(p.Permits, c.Weight))
	t.charge(cost(p.Permits, p.Weight))
	for len(c.idle) > 0 && c.idle[0].key <= c.of.virtual {
		c.keep(c.idle[0].of)
	}
	c.remove(p)
}

// settle corrects the tags of a request's class and tenant.
func (c *class) settle(p *Place, more int) {
	c.flowOf(p).settle(p.stretch, cost(more, c.Weight))
	if c.waiting.length == 0 {
		return
	}
	t := c.tenantOf(p.Tenant)
	t.start = max(t.start, p.tenant.start) // else it was forgotten because this was not above virtual time
	t.settle(p.tenantStretch, cost(more, p.Weight))
	c.keep(t)
}

func (c *class) remove(p *Place) {
	t := p.tenant
	c.count(p, -1)
	c.waiting.remove(p)
	t.line.remove(p)
	t.wait(t.line.length > 0)
	c.wait(c.waiting.length > 0)
	c.old()
	c.keep(t)
	if c.waiting.length == 0 && c.tenants != nil { // none owes anything
		c.nameless.node.leave()
		c.tenants, c.idle, c.active = nil, nil, nil
	}
}

// before returns the permits of the class's requests that go before p: exactly, where each tenant's are of one size.
func (c *class) before(p *Place) float64 {
	own := p.tenant
	mine := own.permits
	for other := p; other != nil; other = own.line.next(other) {
		mine -= counted(other.Permits)
	}
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
