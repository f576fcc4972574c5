package queue

import "math"

// A flow is a class among those of its priority, or a tenant of a class, by start-time fair queueing: see [order].
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

func (f *flow) charge(virtual *float64, cost float64) {
	*virtual = max(*virtual, f.start)
	f.start += cost
}

// part returns how much of a flow's waiting permits goes before a request with that tag, and with the same one if ties
// do: exactly, where its requests are of one size.
func (f *flow) part(tag float64, ties bool, permits, requests int64, weight float64) float64 {
	all := float64(requests)
	first := (tag - f.start) * weight * all / float64(permits)
	if ties {
		first = math.Floor(first+1e-6) + 1
	} else {
		first = math.Ceil(first - 1e-6)
	}
	return max(0, min(first/all, 1))
}

// dearest is the largest cost: beside a larger tag, rounding would lose the costs of others.
const dearest = 1e12

func cost(permits int, weight float64) float64 {
	return max(-dearest, min(float64(permits)/weight, dearest))
}

// A level is the classes of a priority.
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

// A tenant is a flow of a class. One without a name is the class's only one.
type tenant struct {
	flow
	name    string
	weight  float64
	period  uint64 // of the class, to which the tag belongs
	line    list   // its requests
	permits int64  // of these
	node    node[float64, tenant]
}

// before returns the permits of the requests in front of p.
func (t *tenant) before(p *Place) int64 {
	permits := t.permits
	for ; p != nil; p = t.line.next(p) {
		permits -= counted(p.Permits)
	}
	return permits
}
