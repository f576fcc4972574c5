// Package share is the order of package fair: priorities, and shares within one. Outbound's classes are in it too.
package share

import (
	"iter"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve/internal/queue"
)

// An Order is the order of all that wait: priorities strictly, and within one start-time fair queueing (P. Goyal, H.
// Vin and H. Cheng, 1996) over classes, and over tenants within a class.
//
// Start-time fair queueing gives each flow a tag, the start of its next request in virtual time. The flow with the
// smallest tag goes, virtual time becomes that tag, and the flow's tag grows by permits / weight. A flow that was idle
// begins at virtual time, or at its own tag if that is larger. So of two flows that wait both, neither gets ahead
// of the other by more than a request of each.
type Order struct {
	classes []*class
	levels  []*level
	full    func(class int) error
}

// A Class is a kind of requests: fair.Class says what the fields mean. A Weight of 0 is 1.
type Class struct {
	Name     string
	Priority int
	Weight   float64
	MaxAge   time.Duration
	MaxQueue int
}

// A level is a priority.
type level struct {
	priority int
	virtual  float64
	busy     int // flows that wait
	flows    []*share
}

// A share is a class's part in a level.
type share struct {
	level *level
	start float64 // the tag of the next request
	busy  bool
	stretch
}

// A stretch is the time in which a flow keeps its tag. It ends when the flow was idle and virtual time has passed the
// tag: what the flow got by then is forgiven. So what comes back of that later is no credit.
type stretch struct {
	number uint64
	floor  float64 // the tag at its begin
}

// begin begins another stretch at that tag.
func (s *stretch) begin(tag float64) { s.number, s.floor = s.number+1, tag }

// after returns what a tag is after a request of that stretch has come to so much more.
func (s *stretch) after(tag float64, of uint64, more float64) float64 {
	switch {
	case more >= 0:
		return tag + more
	case of != s.number:
		return tag
	}
	return min(tag, max(s.floor, tag+more))
}

// begin says that the share waits, and end that it does not.
func (s *share) begin() {
	if !s.busy {
		s.busy = true
		s.level.busy++
		if s.start <= s.level.virtual {
			s.start = s.level.virtual
			s.stretch.begin(s.start)
		}
	}
}

func (s *share) end() {
	if !s.busy {
		return
	}
	s.busy = false
	s.level.busy--
	if s.level.busy == 0 { // a busy period is over: no class owes anything
		s.level.virtual = 0
		for _, other := range s.level.flows {
			other.start = 0
			other.stretch.begin(0)
		}
	}
}

// dearest is the largest cost of a request: beside a larger tag those of the others would be lost.
const dearest = 1e12

// cost returns by how much a tag grows for so many permits.
func cost(permits int, weight float64) float64 {
	return max(-dearest, min(float64(permits)/weight, dearest))
}

// charge grants permits / weight.
func (s *share) charge(cost float64) {
	s.level.virtual = max(s.level.virtual, s.start)
	s.start += cost
}

// An aging is where the requests of a class go that have waited for MaxAge: to the next higher priority.
type aging struct {
	share
	used bool // MaxAge is set
}

// A class is one of the classes, with its tenants.
type class struct {
	Class
	share
	aged  aging
	group int // its number

	oldest, newest *Entry // of all that wait, in the order in which they came

	virtual float64
	latest  float64          // the largest tag so far
	period  uint64           // how many busy periods are over
	begun   uint64           // how many stretches of tenants have begun
	floor   float64          // virtual when this one began
	flows   map[string]*flow // tenants that wait or have a tag above virtual
	peak    int              // of flows since the map was made
	active  flowHeap         // that wait
	idle    flowHeap         // that don't

	counts
	permits queue.Total // that wait
	sums    queue.Sums  // of what they ask
}

// counts are what Snapshot tells of a class.
type counts struct {
	waiting                     int
	granted, refused, givenBack uint64
	longest                     int64
}

// An Entry is a request.
type Entry struct {
	queue.Place
	class   *class
	tenant  string
	weight  float64 // the tenant's
	flow    *flow
	number  uint64
	arrived int64
	wasAged bool // when it went
	// When it went: the stretches of its share and of its flow.
	ofShare, ofFlow uint64

	next, previous *Entry // of the flow
	newer, older   *Entry // of the class
}

// Of makes e a request of a class, by its number, and of a tenant with that weight. It is called before Enter.
func (o *Order) Of(e *Entry, class int, tenant string, weight float64) {
	e.class, e.tenant, e.weight = o.classes[class], tenant, weight
	e.Group, e.Data = class, e
}

// Counts say what a class is like: fair.ClassSnapshot says what they mean.
type Counts struct {
	Waiting, Tenants            int
	Granted, Refused, GivenBack uint64
	LongestWait                 time.Duration
}

// Counts returns what a class is like at a time of the queue's. The queue must be locked.
func (o *Order) Counts(now int64, class int) Counts {
	c := o.classes[class]
	longest := c.longest
	if c.oldest != nil {
		longest = max(longest, now-c.oldest.arrived)
	}
	return Counts{c.waiting, len(c.flows), c.granted, c.refused, c.givenBack, time.Duration(longest)}
}

// of returns the entry that a place is part of.
func of(p *queue.Place) *Entry { return p.Data.(*Entry) }

// New returns the order of requests of these classes, which are their groups in the queue. Full makes the error of a
// request of which as many wait as may.
func New(classes []Class, full func(class int) error) *Order {
	o := &Order{full: full}
	at := map[int]*level{}
	join := func(s *share, priority int) {
		l := at[priority]
		if l == nil {
			l = &level{priority: priority}
			at[priority] = l
			o.levels = append(o.levels, l)
		}
		s.level = l
		l.flows = append(l.flows, s)
	}
	for _, spec := range classes {
		if spec.Weight == 0 {
			spec.Weight = 1
		}
		c := &class{Class: spec, group: len(o.classes)}
		join(&c.share, spec.Priority)
		if c.aged.used = spec.MaxAge > 0; c.aged.used {
			join(&c.aged.share, spec.Priority+1)
		}
		o.classes = append(o.classes, c)
	}
	return o
}

// Push adds a request.
func (o *Order) Push(now int64, p *queue.Place) error {
	o.age(now)
	e := of(p)
	c := e.class
	if c.MaxQueue > 0 && c.waiting >= c.MaxQueue {
		c.refused += uint64(p.Permits)
		return o.full(c.group)
	}
	rank := p.Join(now)
	e.number, e.arrived = rank.Number, rank.Arrived
	c.share.begin()
	c.waiting++
	c.permits.Add(p.Permits)
	c.sums.Add(p)
	for e.older = c.newest; e.older != nil && e.older.number > e.number; e.older = e.older.older {
		e.newer = e.older
	}
	if e.older != nil {
		e.older.newer = e
	} else {
		c.oldest = e
	}
	if e.newer != nil {
		e.newer.older = e
	} else {
		c.newest = e
	}
	c.push(e)
	return nil
}

// Remove takes out a request that has not been granted.
func (o *Order) Remove(now int64, p *queue.Place) {
	o.age(now)
	e := of(p)
	e.class.remove(e)
	e.unlink(now)
}

// age finds the requests that have waited for MaxAge.
func (o *Order) age(now int64) {
	for _, c := range o.classes {
		c.old(now)
	}
}

// unlink takes a request off the list of its class.
func (e *Entry) unlink(now int64) {
	c := e.class
	c.waiting--
	c.permits.Add(-e.Permits)
	c.sums.Remove(&e.Place)
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		c.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		c.newest = e.older
	}
	e.older, e.newer = nil, nil
	c.old(now)
	if c.waiting == 0 {
		c.share.end()
		c.forget()
	}
}

// old returns the oldest request of the class if it has waited for MaxAge.
func (c *class) old(now int64) *Entry {
	if !c.aged.used {
		return nil
	}
	if e := c.oldest; e != nil && now-e.arrived >= int64(c.MaxAge) {
		c.aged.begin()
		return e
	}
	c.aged.end()
	return nil
}

// A turn is a request that may be the first, and by which tag.
type turn struct {
	entry    *Entry
	priority int
	start    float64
}

func (t turn) before(other turn) bool {
	switch {
	case other.entry == nil:
		return t.entry != nil
	case t.entry == nil:
		return false
	case t.priority != other.priority:
		return t.priority > other.priority
	case t.start != other.start:
		return t.start < other.start
	default:
		return t.entry.number < other.entry.number
	}
}

// First returns which request goes if permits are free now, of those that others don't pass.
func (o *Order) First(now int64) *queue.Place {
	var first turn
	for _, c := range o.classes {
		if t := c.first(now); t.before(first) {
			first = t
		}
	}
	return first.place()
}

// FirstOf returns which request of the class of p goes first.
func (o *Order) FirstOf(now int64, p *queue.Place) *queue.Place {
	return of(p).class.first(now).place()
}

func (t turn) place() *queue.Place {
	if t.entry == nil {
		return nil
	}
	return &t.entry.Place
}

// first returns which request of the class is the first, of those that others don't pass.
func (c *class) first(now int64) (t turn) {
	if c.waiting == 0 {
		return t
	}
	t = turn{c.active[0].head, c.Priority, c.share.start}
	if e := c.old(now); e != nil {
		t = turn{e, c.Priority + 1, c.aged.start}
	}
	switch t.entry.Passed() {
	case queue.PassOne:
		t.entry = c.firstBehind()
	case queue.PassGroup:
		t.entry = nil
	}
	return t
}

// firstBehind returns the first request of the class that others don't pass, if some are passed.
func (c *class) firstBehind() (first *Entry) {
	var from *flow
	for _, f := range c.active {
		e := f.head
		for e != nil && e.Passed() == queue.PassOne {
			e = e.next
		}
		switch {
		case e == nil:
		case e.Passed() == queue.PassGroup:
			return nil
		case first == nil, f.start < from.start, f.start == from.start && e.number < first.number:
			first, from = e, f
		}
	}
	return first
}

// Grant takes out a request because it goes, and charges its tenant and its class.
func (o *Order) Grant(now int64, p *queue.Place) {
	o.age(now)
	e := of(p)
	c := e.class
	e.wasAged = c.old(now) == e
	c.granted += uint64(p.Permits)
	c.longest = max(c.longest, now-e.arrived)
	s := c.shareOf(e)
	e.ofShare, e.ofFlow = s.number, e.flow.number
	s.charge(cost(p.Permits, c.Weight))
	c.grant(e)
	e.unlink(now)
}

// Resize says that a waiting request asks for fewer permits now.
func (o *Order) Resize(_ int64, p *queue.Place, permits int) {
	c := of(p).class
	c.permits.Add(permits - p.Permits)
	c.sums.Resize(p, permits)
}

// Settle charges the account of a granted request.
func (o *Order) Settle(now int64, p *queue.Place, more int) {
	o.age(now)
	e := of(p)
	c := e.class
	if more < 0 {
		c.givenBack += uint64(-more)
	} else {
		c.granted += uint64(more)
	}
	if s := c.shareOf(e); s.level.busy > 0 { // else no class owes anything
		s.start = s.after(s.start, e.ofShare, cost(more, c.Weight))
	}
	c.settle(e, cost(more, e.weight))
}

// shareOf returns the share that a granted request is charged to.
func (c *class) shareOf(e *Entry) *share {
	if e.wasAged {
		return &c.aged.share
	}
	return &c.share
}

// Lapsed counts a request that was refused.
func (o *Order) Lapsed(_ int64, p *queue.Place) {
	c := of(p).class
	c.refused += uint64(p.Permits)
}

// highest returns the highest priority that requests of the class have.
func (c *class) highest() int {
	if c.aged.used {
		return c.Priority + 1
	}
	return c.Priority
}

// Above reports whether a goes before b unless it leaves.
func (o *Order) Above(a, b *queue.Place) bool { return of(a).class.Priority > of(b).class.highest() }

// Before returns the permits of the requests that go before p unless they leave.
func (o *Order) Before(_ int64, p *queue.Place) int {
	var permits queue.Total
	highest := of(p).class.highest()
	for _, c := range o.classes {
		if c.Priority > highest {
			permits = permits.Plus(c.permits)
		}
	}
	return permits.Int()
}

// AtMost returns what all other requests that might go before p, if no other arrives, ask of a limit.
func (o *Order) AtMost(now int64, p *queue.Place, limit int) (sum queue.Total) {
	own := of(p).class
	for _, c := range o.classes {
		if c.Priority >= own.Priority || c.Priority+1 >= own.Priority && c.old(now) != nil {
			sum = sum.Plus(c.sums.Of(limit))
		}
	}
	return p.Without(sum, limit)
}

// Last reports whether all others go before p: there is one class, and one tenant.
func (o *Order) Last(p *queue.Place) bool {
	return len(o.classes) == 1 && len(of(p).class.flows) == 1 && of(p).newer == nil
}

// Changes returns when the next request will have waited for MaxAge.
func (o *Order) Changes(now int64) int64 {
	at := int64(saturate.Never)
	for _, c := range o.classes {
		if e := c.oldest; c.aged.used && e != nil {
			if aged := e.arrived + int64(c.MaxAge); aged > now && aged < at {
				at = aged
			}
		}
	}
	return at
}

// Ahead returns the requests that go before p if no other arrives, and none of them ages meanwhile.
func (o *Order) Ahead(now int64, p *queue.Place) iter.Seq[*queue.Place] {
	return func(yield func(*queue.Place) bool) {
		s := o.simulate(now)
		for e := s.next(); e != nil && &e.Place != p; e = s.next() {
			if !yield(&e.Place) {
				return
			}
		}
	}
}
