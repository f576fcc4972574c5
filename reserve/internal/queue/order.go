package queue

import (
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// An order says which place is first: priorities strictly, and shares within a priority.
//
// The shares are by start-time fair queueing (P. Goyal, H. Vin and H. Cheng, 1996), over the classes of a priority and
// the tenants of a class. Each is a flow, whose tag is the virtual time at which its next request starts. The flow with
// the smallest tag goes. Virtual time becomes that tag, and the tag grows by permits / weight. An idle flow begins at
// virtual time, or at its own tag if larger. So of two flows that both wait, neither gets ahead of the other by more
// than one request of each.
type order struct {
	classes []*class
	full    func(class int) error
}

func newOrder(classes []Class, full func(class int) error) order {
	o := order{full: full}
	levels := map[int]*level{}
	join := func(s *share, priority int) {
		if levels[priority] == nil {
			levels[priority] = new(level)
		}
		s.level = levels[priority]
		s.level.shares = append(s.level.shares, s)
	}
	for i, spec := range classes {
		if spec.Weight == 0 {
			spec.Weight = 1
		}
		c := &class{Class: spec, number: i}
		join(&c.share, spec.Priority)
		if spec.MaxAge > 0 {
			join(&c.aged, spec.Priority+1)
		}
		o.classes = append(o.classes, c)
	}
	return o
}

func (o *order) age(now int64) {
	for _, c := range o.classes {
		c.old(now)
	}
}

// push adds a place, or returns why not.
func (o *order) push(now int64, p *Place) error {
	o.age(now)
	c := o.classes[p.Class]
	if c.MaxQueue > 0 && c.waiting.length >= c.MaxQueue {
		c.counts.Refused += uint64(p.Permits)
		return o.full(c.number)
	}
	p.join(now)
	c.share.wait(true)
	c.push(p)
	return nil
}

// remove takes out a place that is not granted.
func (o *order) remove(now int64, p *Place) {
	o.age(now)
	o.classes[p.Class].remove(now, p)
}

// grant takes out a place that goes, and charges it.
func (o *order) grant(now int64, p *Place) {
	o.age(now)
	c := o.classes[p.Class]
	p.wasAged = c.old(now) == p
	c.counts.Granted += uint64(p.Permits)
	c.counts.LongestWait = max(c.counts.LongestWait, time.Duration(now-p.rank.Arrived))
	s := c.shareOf(p)
	p.stretch = s.stretch
	s.charge(&s.level.virtual, cost(p.Permits, c.Weight))
	c.charge(p)
	c.remove(now, p)
}

// resize makes a waiting place ask for that many permits.
func (o *order) resize(p *Place, permits int) {
	c := o.classes[p.Class]
	c.count(p, -1)
	p.Permits = permits
	c.count(p, 1)
}

// settle charges a granted place with more permits; negative: fewer.
func (o *order) settle(now int64, p *Place, more int) {
	o.age(now)
	c := o.classes[p.Class]
	if more < 0 {
		c.counts.GivenBack += uint64(-more)
	} else {
		c.counts.Granted += uint64(more)
	}
	if s := c.shareOf(p); s.level.waiting > 0 { // else no class owes anything
		s.settle(p.stretch, cost(more, c.Weight))
	}
	c.settle(p, cost(more, p.Weight))
}

// A turn is a request that may be first, and its tag.
type turn struct {
	place    *Place // nil: there is none
	priority int
	start    float64
}

func (t turn) before(other turn) bool {
	switch {
	case t.place == nil || other.place == nil:
		return t.place != nil
	case t.priority != other.priority:
		return t.priority > other.priority
	case t.start != other.start:
		return t.start < other.start
	}
	return t.place.rank.Number < other.place.rank.Number
}

// first returns the place that goes if permits are free now, but for places that others pass; or nil.
func (o *order) first(now int64) *Place {
	var first turn
	for _, c := range o.classes {
		if t := c.first(now); t.before(first) {
			first = t
		}
	}
	return first.place
}

// certain reports whether first goes before p unless it leaves, with the permits of all such places.
func (o *order) certain(first, p *Place) (permits int64, ok bool) {
	own := o.classes[p.Class]
	highest := own.Priority
	if own.aged.level != nil {
		highest++
	}
	for _, c := range o.classes {
		if c.Priority > highest {
			permits += c.asked[ofPermits]
		}
	}
	return permits, o.classes[first.Class].Priority > highest
}

// ahead returns what all places that go before p, if no other arrives, ask, and those of its class: exactly, where each
// flow's requests are of one size.
func (o *order) ahead(now int64, p *Place) (all, ofClass [tracked + 2]float64) {
	own := o.classes[p.Class]
	before, turn := own.before(p), own.turn(now)
	turn.start += before / own.Weight
	for _, c := range o.classes {
		if c.waiting.length == 0 {
			continue
		}
		part := 0.0
		switch of := c.turn(now); {
		case c == own && before > 0:
			part = before / float64(c.asked[ofPermits]-p.asks(ofPermits))
		case c == own || of.priority < turn.priority:
		case of.priority > turn.priority:
			part = 1
		default:
			ties := of.place.rank.Number < p.rank.Number
			part = (&flow{start: of.start}).part(turn.start, ties, c.asked[ofPermits], c.asked[ofPlaces], c.Weight)
		}
		for i, n := range c.asked {
			if c == own {
				ofClass[i] = part * float64(n-p.asks(i))
				all[i] += ofClass[i]
			} else {
				all[i] += part * float64(n)
			}
		}
	}
	return all, ofClass
}

// changes returns when the first may change although no place comes or goes, or never.
func (o *order) changes(now int64) int64 {
	at := int64(saturate.Never)
	for _, c := range o.classes {
		if p := c.waiting.head; c.aged.level != nil && p != nil {
			if aged := p.rank.Arrived + int64(c.MaxAge); aged > now {
				at = min(at, aged)
			}
		}
	}
	return at
}
