// Package share is the order of package fair, and of outbound's classes: priorities strictly, and shares within a
// priority.
//
// The shares are by start-time fair queueing (P. Goyal, H. Vin and H. Cheng, 1996), over the classes of a priority and
// the tenants of a class. Each is a flow, whose tag is the virtual time at which its next request starts. The flow with
// the smallest tag goes. Virtual time becomes that tag, and the tag grows by permits / weight. An idle flow begins at
// virtual time, or at its own tag if larger. So of two flows that both wait, neither gets ahead of the other by more
// than one request of each.
package share

import (
	"iter"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve/internal/queue"
)

// An Order is the order of all requests that wait.
type Order struct {
	classes []*class
	full    func(class int) error
}

// A Class is fair.Class. A Weight of 0 is 1.
type Class struct {
	Name     string
	Priority int
	Weight   float64
	MaxAge   time.Duration
	MaxQueue int
}

// An Entry is a request.
type Entry struct {
	queue.Place
	class  *class
	name   string  // the tenant's
	weight float64 // the tenant's
	tenant *tenant
	// When it went:
	wasAged bool
	stretch uint32 // of its share
}

// Of makes e a request of a class, by its number, and of a tenant. Call it before Enter.
func (o *Order) Of(e *Entry, class int, tenant string, weight float64) {
	e.class, e.name, e.weight = o.classes[class], tenant, weight
	e.Group, e.Data = class, e
}

func of(p *queue.Place) *Entry { return p.Data.(*Entry) }

// Counts are those of a class: see fair.ClassSnapshot.
type Counts struct {
	Waiting, Tenants            int
	Granted, Refused, GivenBack uint64
	LongestWait                 time.Duration
}

func (o *Order) Counts(now int64, class int) Counts {
	c := o.classes[class]
	counts := c.counts
	counts.Waiting, counts.Tenants = c.waiting.Len(), len(c.tenants)
	if p := c.waiting.Head(); p != nil {
		counts.LongestWait = max(counts.LongestWait, time.Duration(now-p.Ranked().Arrived))
	}
	return counts
}

// New returns the order of requests of these classes, which are their groups in the queue. Full makes the error of a
// request to a class that is full (MaxQueue).
func New(classes []Class, full func(class int) error) *Order {
	o := &Order{full: full}
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

func (o *Order) age(now int64) {
	for _, c := range o.classes {
		c.old(now)
	}
}

func (o *Order) Push(now int64, p *queue.Place) error {
	o.age(now)
	c := of(p).class
	if c.MaxQueue > 0 && c.waiting.Len() >= c.MaxQueue {
		c.counts.Refused += uint64(p.Permits)
		return o.full(c.number)
	}
	c.share.wait(true)
	_ = c.waiting.Push(now, p)
	c.push(of(p))
	return nil
}

func (o *Order) Remove(now int64, p *queue.Place) {
	o.age(now)
	of(p).leave(now)
}

func (o *Order) Grant(now int64, p *queue.Place) {
	o.age(now)
	e := of(p)
	c := e.class
	e.wasAged = c.old(now) == p
	c.counts.Granted += uint64(p.Permits)
	c.counts.LongestWait = max(c.counts.LongestWait, time.Duration(now-p.Ranked().Arrived))
	s := c.shareOf(e)
	e.stretch = s.stretch
	charge(&s.level.virtual, &s.flow, cost(p.Permits, c.Weight))
	c.charge(e)
	e.leave(now)
}

func (o *Order) Resize(now int64, p *queue.Place, permits int) {
	of(p).class.waiting.Resize(now, p, permits)
}

func (o *Order) Settle(now int64, p *queue.Place, more int) {
	o.age(now)
	e := of(p)
	c := e.class
	if more < 0 {
		c.counts.GivenBack += uint64(-more)
	} else {
		c.counts.Granted += uint64(more)
	}
	if s := c.shareOf(e); s.level.waiting > 0 { // else no class owes anything
		s.settle(e.stretch, cost(more, c.Weight))
	}
	c.settle(e, cost(more, e.weight))
}

func (o *Order) Lapsed(_ int64, p *queue.Place) { of(p).class.counts.Refused += uint64(p.Permits) }

// A turn is a request that may be first, and its tag.
type turn struct {
	place    *queue.Place // nil: there is none
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
	return t.place.Ranked().Number < other.place.Ranked().Number
}

func (o *Order) First(now int64) *queue.Place {
	var first turn
	for _, c := range o.classes {
		if t := c.first(now); t.before(first) {
			first = t
		}
	}
	return first.place
}

func (o *Order) FirstOf(now int64, p *queue.Place) *queue.Place { return of(p).class.first(now).place }

func (o *Order) Certain(_ int64, first, p *queue.Place) (permits int, ok bool) {
	highest := of(p).class.Priority
	if of(p).class.aged.level != nil {
		highest++
	}
	var sum queue.Total
	for _, c := range o.classes {
		if c.Priority > highest {
			sum = sum.Plus(c.waiting.Of(queue.OfPermits))
		}
	}
	return sum.Int(), of(first).class.Priority > highest
}

func (o *Order) AtMost(now int64, p *queue.Place, limit int) (sum queue.Total, exact bool) {
	own := of(p).class
	exact = own.waiting.Tail() == p && len(own.active) == 1 && !own.isOld(now, p)
	for _, c := range o.classes {
		if c.Priority < own.Priority && (c.Priority+1 < own.Priority || c.old(now) == nil) {
			continue
		}
		sum = sum.Plus(c.waiting.Of(limit))
		exact = exact && (c == own || c.Priority > own.Priority || c.waiting.Len() == 0)
	}
	return p.Without(sum, limit), exact
}

func (o *Order) Changes(now int64) int64 {
	at := int64(saturate.Never)
	for _, c := range o.classes {
		if p := c.waiting.Head(); c.aged.level != nil && p != nil {
			if aged := p.Ranked().Arrived + int64(c.MaxAge); aged > now {
				at = min(at, aged)
			}
		}
	}
	return at
}

func (o *Order) Ahead(now int64, p *queue.Place) iter.Seq[*queue.Place] {
	return func(yield func(*queue.Place) bool) {
		s := o.simulate(now)
		for next := s.next(); next != nil && next != p && yield(next); next = s.next() {
		}
	}
}
