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
	now     int64
	classes []*class
}

func newOrder(classes []Class) *order {
	o := &order{}
	levels := map[int]*level{}
	at := func(priority int) *level {
		if levels[priority] == nil {
			levels[priority] = new(level)
		}
		return levels[priority]
	}
	for _, spec := range classes {
		c := &class{Class: spec, order: o, flow: flow{level: at(spec.Priority)}}
		if spec.Weight == 0 {
			c.Weight = 1
		}
		if spec.MaxAge > 0 {
			c.aged.level = at(spec.Priority + 1)
		}
		c.nameless = c.newTenant("")
		o.classes = append(o.classes, c)
	}
	return o
}

// at says what time it is.
func (o *order) at(now int64) {
	o.now = now
	for _, c := range o.classes {
		c.old()
	}
}

func (o *order) of(p *Place) *class { return o.classes[p.Class] }

// push adds a place, and reports whether its class has room.
func (o *order) push(p *Place) bool {
	c := o.of(p)
	if c.MaxQueue > 0 && c.waiting.length >= c.MaxQueue {
		c.counts.Refused += uint64(p.Permits)
		return false
	}
	p.join(o.now)
	c.push(p)
	return true
}

// grant takes out a place that goes, and charges it.
func (o *order) grant(p *Place) {
	c := o.of(p)
	c.counts.Granted += uint64(p.Permits)
	c.counts.LongestWait = max(c.counts.LongestWait, time.Duration(o.now-p.rank.Arrived))
	c.grant(p)
}

// resize makes a waiting place ask for that many permits.
func (o *order) resize(p *Place, permits int) {
	c := o.of(p)
	c.count(p, -1)
	p.Permits = permits
	c.count(p, 1)
}

// settle charges a granted place with more permits; negative: fewer.
func (o *order) settle(p *Place, more int) {
	c := o.of(p)
	if more < 0 {
		c.counts.GivenBack += uint64(-more)
	} else {
		c.counts.Granted += uint64(more)
	}
	c.settle(p, more)
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
func (o *order) first() *Place {
	var first turn
	for _, c := range o.classes {
		if t := c.first(); t.before(first) {
			first = t
		}
	}
	return first.place
}

// certain reports whether first goes before p unless it leaves, with the permits of all such places.
func (o *order) certain(first, p *Place) (permits int64, ok bool) {
	own := o.of(p)
	highest := own.Priority
	if own.aged.level != nil {
		highest++
	}
	for _, c := range o.classes {
		if c.Priority > highest {
			permits += c.asked[ofPermits]
		}
	}
	return permits, o.of(first).Priority > highest
}

// ahead returns what all places that go before p, if no other arrives, ask, and those of its class: exactly, where each
// flow's requests are of one size.
func (o *order) ahead(p *Place) (all, ofClass [tracked + 2]float64) {
	own := o.of(p)
	before, turn := own.before(p), own.turn()
	turn.start += before / own.Weight
	for _, c := range o.classes {
		if c.waiting.length == 0 {
			continue
		}
		part := 0.0
		switch of := c.turn(); {
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
func (o *order) changes() int64 {
	at := int64(saturate.Never)
	for _, c := range o.classes {
		if p := c.waiting.head; c.aged.level != nil && p != nil {
			if aged := p.rank.Arrived + int64(c.MaxAge); aged > o.now {
				at = min(at, aged)
			}
		}
	}
	return at
}
