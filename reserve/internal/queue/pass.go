package queue

// The methods in this file expect Queue.mu to be locked.

import (
	"slices"
	"time"
)

const mostPassed = 16

// letsPass reports whether others pass a bound place from now on.
func (q *Queue) letsPass(p *Place) bool {
	h := p.hold
	if p.pass != NoPass || len(q.passed) >= mostPassed || h.delay() <= h.slack() {
		return false
	}
	switch l := &h.limits()[h.last]; {
	case !h.full && l.Own:
		p.pass = PassGroup
	case p.partial(l):
		p.pass = PassOne
	default:
		return false
	}
	q.passed = append(q.passed, p)
	q.bound = nil
	return true
}

// partial reports whether an option without that limit is closed to a place.
func (p *Place) partial(l *Limit) bool {
	for i, o := range p.Options {
		if p.Except != nil && p.Except(i) && len(o.Limits) > 0 && !slices.ContainsFunc(o.Limits, l.same) {
			return true
		}
	}
	return false
}

func (q *Queue) unpass(p *Place) {
	if p.pass != NoPass {
		p.pass = NoPass
		q.passed = slices.DeleteFunc(q.passed, func(other *Place) bool { return other == p })
	}
}

// stillFirst reports whether a place with PassGroup is the first of its group.
func (q *Queue) stillFirst(now int64, p *Place) bool {
	p.pass = NoPass
	first := q.order.FirstOf(now, p)
	p.pass = PassGroup
	return first == p
}

// rejoin ends the passing of a place, and binds it if first. If it returns true, it has unlocked the queue.
func (q *Queue) rejoin(now int64, p *Place) bool {
	q.unpass(p)
	if q.order.First(now) != p {
		return q.takeBack(q.release(p))
	}
	old := q.bound
	q.bound = p.hold
	if old == nil {
		return q.takeBack()
	}
	old.place.state, old.place.hold = waiting, nil
	return q.takeBack(old)
}

// anew takes all holds if others pass a place to which an option is closed: they may hold what it would get.
func (q *Queue) anew(now int64) (holds []*hold) {
	epoch := q.epoch.Load()
	if !q.several || len(q.passed) == 0 || q.compared == epoch {
		return nil
	}
	if now < q.renewed { // two queues at the same limits would have each other look without end
		return nil
	}
	q.compared, q.renewed = epoch, add(now, time.Millisecond)
	for _, p := range slices.Clone(q.passed) {
		if h := q.release(p); h != nil {
			holds = append(holds, h)
		}
	}
	if h := q.bound; h != nil {
		holds = append(holds, q.release(h.place))
	}
	return holds
}
