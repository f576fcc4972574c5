// Package order says which request goes first: by priority, by shares, and first come, first served. It has no clock,
// no lock, and no limits: package queue asks it.
package order

import (
	"iter"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// An Order says which entry is first. It must not be used concurrently.
//
// The classes of a priority, and the tenants of a class, share by start-time fair queueing (Goyal, Vin and Cheng,
// 1996). They are flows, whose tags are the virtual times at which their next requests start. The flow with the
// smallest tag goes, virtual time becomes that tag, and the tag grows by permits / weight. An idle flow begins at
// virtual time, or at its own tag if larger.
type Order[T any] struct {
	now     int64
	stays   func(*T) bool
	classes []*class[T]
	ages    []*class[T] // with a MaxAge
}

// An Entry is a request; its exported fields are set before Push.
type Entry[T any] struct {
	Of      *T             // what it stands for
	Permits int            // what its class and tenant are charged
	Asks    [Tracked]int64 // of the first limits of its option
	Rank    Rank           // Push sets it
	Passed  bool           // others pass it, because it waits for something that they don't need

	wasAged       bool   // when it went
	stretch       uint32 // of its class, then
	tenantStretch uint32 // of its tenant
	links         [kinds]link[T]
	tenant        *tenant[T]
}

// Asked returns what its class counts of it: see the type [Asked].
func (e *Entry[T]) Asked(i int) int64 {
	switch i {
	case OfPermits:
		return Counted(e.Permits)
	case OfPlaces:
		return 1
	}
	return e.Asks[i]
}

// New returns an order of these classes. Stays reports whether an entry that others pass waits for a limit of its
// class: then none of its class passes it.
func New[T any](classes []Class, stays func(*T) bool) *Order[T] {
	o := &Order[T]{stays: stays}
	levels := map[int]*level{}
	at := func(priority int) *level {
		if levels[priority] == nil {
			levels[priority] = new(level)
		}
		return levels[priority]
	}
	for _, spec := range classes {
		c := &class[T]{Class: spec, order: o, flow: flow{level: at(spec.Priority)}}
		if spec.Weight == 0 {
			c.Weight = 1
		}
		if spec.MaxAge > 0 {
			c.aged.level = at(spec.Priority + 1)
			o.ages = append(o.ages, c)
		}
		c.nameless = c.newTenant("")
		o.classes = append(o.classes, c)
	}
	return o
}

func (o *Order[T]) At(now int64) {
	o.now = now
	for _, c := range o.ages {
		c.old()
	}
}

func (o *Order[T]) of(e *Entry[T]) *class[T] { return e.tenant.class }

// Push adds an entry of a class and a tenant ("": none) of that weight (0: 1), and reports whether the class has room.
// The rank of a request that may ask again is kept in again.
func (o *Order[T]) Push(e *Entry[T], class int, tenant string, weight float64, again *Rank) bool {
	c := o.classes[class]
	if e.tenant = c.tenantOf(tenant, weight); c.MaxQueue > 0 && c.waiting.length >= c.MaxQueue {
		o.Refuse(e)
		c.keep(e.tenant)
		return false
	}
	e.Rank = rankAt(o.now, again)
	c.push(e)
	return true
}

func (o *Order[T]) Remove(e *Entry[T]) { o.of(e).remove(e) }

// Refuse counts the permits of an entry that does not go, since it would be too late, or can't.
func (o *Order[T]) Refuse(e *Entry[T]) { o.of(e).counts.Refused += uint64(e.Permits) }

// Grant takes out a place that goes, and charges it.
func (o *Order[T]) Grant(e *Entry[T]) {
	c := o.of(e)
	c.counts.Granted += uint64(e.Permits)
	c.counts.LongestWait = max(c.counts.LongestWait, time.Duration(o.now-e.Rank.Arrived))
	c.grant(e)
}

// Resize makes a waiting entry ask for that many permits, and for asks of the first limits.
func (o *Order[T]) Resize(e *Entry[T], permits int, asks [Tracked]int64) {
	c := o.of(e)
	c.count(e, -1)
	e.Permits, e.Asks = permits, asks
	c.count(e, 1)
}

// Settle charges a granted place with more permits; negative: fewer.
func (o *Order[T]) Settle(e *Entry[T], more int) {
	c := o.of(e)
	if more < 0 {
		c.counts.GivenBack += uint64(-more)
	} else {
		c.counts.Granted += uint64(more)
	}
	c.settle(e, more)
}

// A turn is a request that may be first, and its tag.
type turn[T any] struct {
	entry    *Entry[T] // nil: there is none
	priority int
	start    float64
}

func (t turn[T]) before(other turn[T]) bool {
	switch {
	case t.entry == nil || other.entry == nil:
		return t.entry != nil
	case t.priority != other.priority:
		return t.priority > other.priority
	case t.start != other.start:
		return t.start < other.start
	}
	return t.entry.Rank.Number < other.entry.Rank.Number
}

// First returns the entry that goes if permits are free now, except for entries that others pass; or nil.
func (o *Order[T]) First() *Entry[T] {
	var first turn[T]
	for _, c := range o.classes {
		if c.waiting.length > 0 {
			if t := c.first(); first.entry == nil || t.before(first) {
				first = t
			}
		}
	}
	return first.entry
}

// Certain reports whether first goes before e unless it leaves, with the permits of all such places.
func (o *Order[T]) Certain(first, e *Entry[T]) (permits int64, ok bool) {
	own := o.of(e)
	highest := own.Priority
	if own.aged.level != nil {
		highest++
	}
	for _, c := range o.classes {
		if c.Priority > highest {
			permits += c.asked[OfPermits]
		}
	}
	return permits, o.of(first).Priority > highest
}

// Ahead returns what is asked by all entries that go before e if no other arrives, and by those of its class: exactly,
// where each flow's requests are of one size, but for equal tags of several tenants.
func (o *Order[T]) Ahead(e *Entry[T]) (all, ofClass [Tracked + 2]float64) {
	own := o.of(e)
	before, turn := own.before(e), own.turn()
	turn.start += before / own.Weight
	for _, c := range o.classes {
		if c.waiting.length == 0 {
			continue
		}
		share := 0.0
		switch of := c.turn(); {
		case c == own && before > 0:
			share = before / float64(c.asked[OfPermits]-e.Asked(OfPermits))
		case c == own || of.priority < turn.priority:
		case of.priority > turn.priority:
			share = 1
		default:
			share = part(&flow{start: of.start}, &c.waiting, c.asked[OfPermits], c.Weight, turn.start, e)
		}
		for i, n := range c.asked {
			if c == own {
				ofClass[i] = share * float64(n-e.Asked(i))
				all[i] += ofClass[i]
			} else {
				all[i] += share * float64(n)
			}
		}
	}
	return all, ofClass
}

// Changes returns when the first may change although no place comes or goes, or never.
func (o *Order[T]) Changes() int64 {
	at := int64(saturate.Never)
	for _, c := range o.ages {
		if e := c.waiting.head; e != nil {
			if aged := e.Rank.Arrived + int64(c.MaxAge); aged > o.now {
				at = min(at, aged)
			}
		}
	}
	return at
}

// StillFirst reports whether an entry that others pass would be the first of its class if they did not.
func (o *Order[T]) StillFirst(e *Entry[T]) bool {
	e.Passed = false
	first := o.of(e).first()
	e.Passed = true
	return first.entry == e
}

// Before yields the entries that may go before one: of the classes of its priority and of higher ones, or only of its
// own.
func (o *Order[T]) Before(e *Entry[T], ownOnly bool) iter.Seq[*T] {
	own := o.of(e)
	return func(yield func(*T) bool) {
		for _, c := range o.classes {
			if c != own && (ownOnly || c.Priority < own.Priority) {
				continue
			}
			for other := c.waiting.head; other != nil && other != e; other = c.waiting.next(other) {
				if !yield(other.Of) {
					return
				}
			}
		}
	}
}

func (o *Order[T]) Counts() (all []Counts) {
	for _, c := range o.classes {
		counts := c.counts
		counts.Waiting, counts.Tenants = c.waiting.length, len(c.active)+len(c.idle)
		if e := c.waiting.head; e != nil {
			counts.LongestWait = max(counts.LongestWait, time.Duration(o.now-e.Rank.Arrived))
		}
		all = append(all, counts)
	}
	return all
}
