package order

import "math"

// A level is the flows that share something: the classes of a priority, or the tenants of a class, by start-time fair
// queueing: see [Order].
type level struct {
	virtual float64
	base    float64 // virtual when a flow last began to wait and none had waited: then no flow owed anything
	highest float64 // of all tags
	waiting int     // flows
	stretch uint32  // the latest
}

type flow struct {
	level *level
	start float64 // the tag of its next request
	waits bool
	// A stretch begins when the flow was idle and virtual time passed its tag: then it owes nothing.
	stretch uint32
	floor   float64 // the tag at which the stretch began
}

func (f *flow) wait(waits bool) {
	l := f.level
	switch {
	case f.waits == waits:
	case !waits:
		if l.waiting--; l.waiting == 0 {
			l.virtual, l.base = l.highest, l.highest
		}
	default:
		l.waiting++
		if f.start <= l.virtual {
			l.stretch++
			f.start, f.floor, f.stretch = l.virtual, l.virtual, l.stretch
		}
	}
	f.waits = waits
}

func (f *flow) charge(cost float64) {
	l := f.level
	l.virtual = max(l.virtual, f.start)
	f.start += cost
	l.highest = max(l.highest, f.start)
}

// settle corrects the tag after a request of that stretch cost more; forgiven cost is no credit.
func (f *flow) settle(stretch uint32, more float64) {
	l := f.level
	switch {
	case l.waiting == 0: // no flow owes anything
	case more >= 0:
		f.start = max(f.start, l.base) + more
	case stretch == f.stretch:
		f.start = max(f.floor, f.start+more)
	}
	l.highest = max(l.highest, f.start)
}

// part returns how much of a flow's waiting permits goes before an entry of that tag: exactly, where its requests are
// of one size and go in the order of the line.
func part[T any](f *flow, line *list[T], permits int64, weight, tag float64, e *Entry[T]) float64 {
	all := float64(line.length)
	first := (tag - f.start) * weight * all / float64(permits)
	if same := math.Round(first); math.Abs(first-same) > 1e-6 {
		first = math.Ceil(first)
	} else if first = same; line.earlier(int(max(-1, min(same, all))), e) { // of equal tags
		first++
	}
	return max(0, min(first/all, 1))
}

// dearest is the largest cost: beside a larger tag, rounding would lose the costs of others.
const dearest = 1e12

func cost(permits int, weight float64) float64 {
	return max(-dearest, min(float64(permits)/weight, dearest))
}
