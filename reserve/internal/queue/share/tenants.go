package share

// A flow is a tenant of a class that waits, or that has had more than virtual time tells.
type flow struct {
	tenant     string
	weight     float64
	start      float64 // the tag of its next request
	period     uint64  // the busy period of the class to which the tag belongs
	head, tail *Entry
	index      int // in the heap that it is in
	stretch
}

// push adds a request to its tenant.
func (c *class) push(e *Entry) {
	f := c.flows[e.tenant]
	if f == nil {
		f = c.newFlow(e.tenant, c.virtual)
	} else if f.head == nil {
		c.idle.remove(f)
	}
	e.flow, f.weight = f, e.weight
	for e.previous = f.tail; e.previous != nil && e.previous.number > e.number; e.previous = e.previous.previous {
		e.next = e.previous
	}
	if e.next != nil {
		e.next.previous = e
	} else {
		f.tail = e
	}
	if e.previous != nil {
		e.previous.next = e
		return
	}
	f.head = e
	if e.next != nil {
		c.active.fix(f)
		return
	}
	c.latest = max(c.latest, f.start)
	c.active.push(f)
}

// newFlow returns a tenant with that tag, at which its stretch begins.
func (c *class) newFlow(tenant string, start float64) *flow {
	if c.flows == nil {
		c.flows, c.peak = map[string]*flow{}, 0
	}
	c.begun++
	f := &flow{tenant: tenant, period: c.period, start: start, stretch: stretch{c.begun, start}}
	c.flows[tenant] = f
	c.peak = max(c.peak, len(c.flows))
	return f
}

// remove takes a request that has not been granted off its tenant's list.
func (c *class) remove(e *Entry) {
	f := e.flow
	head := f.head
	if e.previous != nil {
		e.previous.next = e.next
	} else {
		f.head = e.next
	}
	if e.next != nil {
		e.next.previous = e.previous
	} else {
		f.tail = e.previous
	}
	e.next, e.previous = nil, nil
	switch {
	case f.head == nil:
		c.active.remove(f)
		c.rest(f)
	case f.head != head:
		c.active.fix(f) // flows with the same tag go in the order of their requests
	}
}

// grant takes out a request because it goes, and charges its tenant.
func (c *class) grant(e *Entry) {
	f := e.flow
	c.virtual = max(c.virtual, f.start)
	f.start += cost(e.Permits, e.weight)
	c.latest = max(c.latest, f.start)
	c.remove(e)
	if f.head != nil {
		c.active.fix(f)
	}
	for len(c.idle) > 0 && c.idle[0].start <= c.virtual {
		c.drop(c.idle[0])
	}
}

// rest keeps or forgets a tenant that does not wait.
func (c *class) rest(f *flow) {
	if f.start > c.virtual {
		c.idle.push(f)
	} else {
		delete(c.flows, f.tenant)
	}
}

// drop forgets an idle tenant.
func (c *class) drop(f *flow) {
	c.idle.remove(f)
	delete(c.flows, f.tenant)
}

// kept is how many tenants a map may have held that is used again.
const kept = 64

// forget ends a busy period: no request of the class waits, and no tenant owes anything.
func (c *class) forget() {
	c.virtual, c.latest, c.floor = 0, 0, 0
	c.period++
	if c.peak > kept {
		c.flows, c.idle, c.active = nil, nil, nil
		return
	}
	clear(c.flows)
	clear(c.idle)
	c.idle = c.idle[:0]
}

// settle corrects a tenant's tag by what a granted request costs more. A tenant that waits gets all of it. One that
// does not owes what is more than virtual time.
func (c *class) settle(e *Entry, more float64) {
	f := c.flows[e.tenant]
	switch {
	case f == nil:
		if more <= 0 || c.waiting == 0 {
			return
		}
		start := c.floor
		if e.flow.period == c.period {
			start = e.flow.start // it was forgotten because this was not above virtual time
		}
		f = c.newFlow(e.tenant, start)
		f.start += more
		e.flow = f
		c.rest(f)
	case f.head != nil:
		f.start = f.after(f.start, e.ofFlow, more)
		c.active.fix(f)
	default:
		c.idle.remove(f)
		f.start = f.after(f.start, e.ofFlow, more)
		c.rest(f)
	}
	c.latest = max(c.latest, f.start)
}

// A flowHeap holds flows by their tags, and those with the same tag by the order of their requests.
type flowHeap []*flow

func (f *flow) before(other *flow) bool {
	if f.start != other.start || f.head == nil || other.head == nil {
		return f.start < other.start
	}
	return f.head.number < other.head.number
}

func (h *flowHeap) push(f *flow) {
	f.index = len(*h)
	*h = append(*h, f)
	h.up(f.index)
}

func (h *flowHeap) remove(f *flow) {
	i, last := f.index, len(*h)-1
	(*h)[i] = (*h)[last]
	(*h)[i].index = i
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.fix((*h)[i])
	}
}

func (h *flowHeap) fix(f *flow) {
	if i := f.index; !h.down(i) {
		h.up(i)
	}
}

func (h flowHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h flowHeap) down(i int) (moved bool) {
	for {
		least := 2*i + 1
		if least >= len(h) {
			return moved
		}
		if right := least + 1; right < len(h) && h[right].before(h[least]) {
			least = right
		}
		if !h[least].before(h[i]) {
			return moved
		}
		h.swap(i, least)
		i, moved = least, true
	}
}

func (h flowHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// A simulation goes through the requests that wait in the order in which they will go.
type simulation struct {
	classes []simulated
	now     int64
}

type simulated struct {
	class     *class
	start     float64
	agedStart float64
	flows     []virtualFlow // a heap
	old       *Entry        // the oldest one that has not gone, if it is aged
}

type virtualFlow struct {
	start, weight float64
	head          *Entry
}

func (o *Order) simulate(now int64) *simulation {
	s := &simulation{now: now}
	for _, c := range o.classes {
		if c.waiting == 0 {
			continue
		}
		one := simulated{class: c, old: c.old(now), start: c.share.start, agedStart: c.aged.start}
		one.flows = make([]virtualFlow, len(c.active))
		for i, f := range c.active {
			one.flows[i] = virtualFlow{f.start, f.weight, f.head}
		}
		s.classes = append(s.classes, one)
	}
	return s
}

// next returns the next request, or nil.
func (s *simulation) next() *Entry {
	var first turn
	var from *simulated
	for i := range s.classes {
		c := &s.classes[i]
		if len(c.flows) == 0 {
			continue
		}
		t := turn{c.flows[0].head, c.class.Priority, c.start}
		if c.old != nil {
			t = turn{c.old, c.class.Priority + 1, c.agedStart}
		}
		if t.before(first) {
			first, from = t, c
		}
	}
	if from == nil {
		return nil
	}
	e := first.entry
	price := cost(e.Permits, from.class.Weight)
	if e != from.old {
		from.start += price
		from.pop()
		return e
	}
	from.agedStart += price
	for i := range from.flows {
		if f := &from.flows[i]; f.head == e { // the oldest of a class is the first of its tenant
			from.advance(i)
			break
		}
	}
	if from.old = e.newer; from.old != nil && s.now-from.old.arrived < int64(from.class.MaxAge) {
		from.old = nil
	}
	return e
}

// pop takes the first request.
func (c *simulated) pop() { c.advance(0) }

// advance charges the flow with that index, and moves it to its place.
func (c *simulated) advance(i int) {
	f := &c.flows[i]
	f.start += cost(f.head.Permits, f.weight)
	if f.head = f.head.next; f.head == nil {
		last := len(c.flows) - 1
		c.flows[i] = c.flows[last]
		c.flows = c.flows[:last]
	}
	if i < len(c.flows) {
		c.fix(i)
	}
}

func (f *virtualFlow) before(other *virtualFlow) bool {
	if f.start != other.start {
		return f.start < other.start
	}
	return f.head.number < other.head.number
}

// fix moves a flow down or up in the heap.
func (c *simulated) fix(i int) {
	h := c.flows
	for i > 0 && h[i].before(&h[(i-1)/2]) {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
	for {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if right := least + 1; right < len(h) && h[right].before(&h[least]) {
			least = right
		}
		if !h[least].before(&h[i]) {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
