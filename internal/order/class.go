package order

import "time"

// A Class is what an order knows of a class of requests.
type Class struct {
	Priority int           // a higher one goes first
	Weight   float64       // its share among the classes of its priority; 0: 1
	MaxAge   time.Duration // a request that has waited for so long goes as one of the next priority; 0: never
	MaxQueue int           // so many may wait; 0: any number
}

// Counts are a class's; Granted, Refused and GivenBack are permits.
type Counts struct {
	Waiting, Tenants            int
	Granted, Refused, GivenBack uint64
	LongestWait                 time.Duration
}

type class[T any] struct {
	Class
	order   *Order[T]
	flow            // among the classes of its priority
	aged    flow    // of requests that have waited for MaxAge; it has no level if MaxAge is not set
	waiting list[T] // in the order in which they came
	asked   Asked   // by those

	of           level                 // the tenants
	nameless     *tenant[T]            // of requests without a tenant
	tenants      map[string]*tenant[T] // the others that wait, or whose tag is above virtual
	active, idle Heap[float64, tenant[T]]

	counts Counts
}

type tenant[T any] struct {
	flow
	class   *class[T]
	name    string
	weight  float64
	line    list[T] // its requests
	permits int64   // of these
	node    Node[float64, tenant[T]]
}

// Asked is what requests ask of the first limits of their options, then of their own permits, then their number.
type Asked [Tracked + 2]int64

const (
	Tracked   = 4
	OfPermits = Tracked
	OfPlaces  = Tracked + 1
)

// Counted is at most 2^40 permits, so that sums of them don't overflow.
func Counted(permits int) int64 { return min(int64(permits), 1<<40) }

// count counts an entry; with sign -1 no longer.
func (c *class[T]) count(e *Entry[T], sign int64) {
	for i := range c.asked {
		c.asked[i] += sign * e.Asked(i)
	}
	e.tenant.permits += sign * e.Asked(OfPermits)
}

// old returns the oldest request if it has waited for MaxAge, or nil.
func (c *class[T]) old() *Entry[T] {
	if c.aged.level == nil {
		return nil
	}
	e := c.waiting.head
	if e != nil && c.order.now-e.Rank.Arrived < int64(c.MaxAge) {
		e = nil
	}
	c.aged.wait(e != nil)
	return e
}

func (c *class[T]) flowOf(e *Entry[T]) *flow {
	if e.wasAged {
		return &c.aged
	}
	return &c.flow
}

func (c *class[T]) turn() turn[T] {
	if e := c.old(); e != nil {
		return turn[T]{e, c.Priority + 1, c.aged.start}
	}
	return turn[T]{c.active[0].Of.line.head, c.Priority, c.start}
}

// first returns the turn of the first request that others don't pass; none behind one that stays: see [New]. A
// request waits.
func (c *class[T]) first() (t turn[T]) {
	if t = c.turn(); !t.entry.Passed {
		return t
	}
	var first turn[T]
	for _, n := range c.active {
		e := n.Of.line.head
		for ; e != nil && e.Passed; e = n.Of.line.next(e) {
			if c.order.stays(e.Of) {
				return turn[T]{}
			}
		}
		if other := (turn[T]{e, 0, n.Of.start}); other.before(first) {
			first = other
		}
	}
	t.entry = first.entry
	return t
}

func (c *class[T]) push(e *Entry[T]) {
	t := e.tenant
	c.waiting.insert(e)
	t.line.insert(e)
	c.count(e, 1)
	c.wait(true)
	t.wait(true)
	c.keep(t)
}

// tenantOf returns a tenant, from now on of that weight.
func (c *class[T]) tenantOf(name string, weight float64) (t *tenant[T]) {
	if t = c.nameless; name != "" {
		t = c.tenants[name]
	}
	if t == nil {
		if c.tenants == nil {
			c.tenants = map[string]*tenant[T]{}
		}
		t = c.newTenant(name)
		c.tenants[name] = t
	}
	if t.weight = weight; weight == 0 {
		t.weight = 1
	}
	return t
}

func (c *class[T]) newTenant(name string) *tenant[T] {
	t := &tenant[T]{flow: flow{level: &c.of}, class: c, name: name, line: list[T]{kind: 1}}
	t.node.Of = t
	return t
}

// keep lists a tenant as waiting, as owing, or not at all.
func (c *class[T]) keep(t *tenant[T]) {
	t.node.Key = t.start
	if e := t.line.head; e != nil {
		t.node.Number = e.Rank.Number
		c.active.Put(&t.node)
	} else if t.start > c.of.virtual {
		c.idle.Put(&t.node)
	} else if t.node.Leave(); t != c.nameless {
		delete(c.tenants, t.name)
	}
}

func (c *class[T]) grant(e *Entry[T]) {
	e.wasAged = c.old() == e
	f, t := c.flowOf(e), e.tenant
	e.stretch, e.tenantStretch = f.stretch, t.stretch
	f.charge(cost(e.Permits, c.Weight))
	t.charge(cost(e.Permits, t.weight))
	for len(c.idle) > 0 && c.idle[0].Key <= c.of.virtual {
		c.keep(c.idle[0].Of)
	}
	c.remove(e)
}

func (c *class[T]) settle(e *Entry[T], more int) {
	c.flowOf(e).settle(e.stretch, cost(more, c.Weight))
	if c.waiting.length == 0 {
		return
	}
	t := c.tenantOf(e.tenant.name, e.tenant.weight)
	t.start = max(t.start, e.tenant.start) // else it was forgotten because this was not above virtual time
	t.settle(e.tenantStretch, cost(more, t.weight))
	c.keep(t)
}

func (c *class[T]) remove(e *Entry[T]) {
	t := e.tenant
	c.count(e, -1)
	c.waiting.remove(e)
	t.line.remove(e)
	t.wait(t.line.length > 0)
	c.wait(c.waiting.length > 0)
	c.old()
	c.keep(t)
	if c.waiting.length == 0 && c.tenants != nil { // none owes anything
		c.nameless.node.Leave()
		c.tenants, c.idle, c.active = nil, nil, nil
	}
}

// before returns the permits of the class's requests that go before e: exactly, where each tenant's are of one size.
func (c *class[T]) before(e *Entry[T]) float64 {
	own := e.tenant
	mine := own.permits
	for other := e; other != nil; other = own.line.next(other) {
		mine -= Counted(other.Permits)
	}
	before, tag := float64(mine), own.start+float64(mine)/own.weight
	if len(c.active) > 1 {
		for _, n := range c.active {
			if t := n.Of; t != own {
				before += float64(t.permits) * part(&t.flow, &t.line, t.permits, t.weight, tag, e)
			}
		}
	}
	return before
}
