package queue

// The methods in this file expect Queue.mu to be locked.

import "slices"

const mostPassed = 16

func (q *Queue) letsPass(p *Place) bool {
	h := p.hold
	if p.entry.Passed || len(q.passed) >= mostPassed || h.delay() <= h.slack ||
		!h.own() && !p.partial(&h.limits()[h.last]) {
		return false
	}
	p.entry.Passed = true
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

// rejoin ends the passing of a place, and binds it if first. It returns the hold to give back, if any.
func (q *Queue) rejoin(p *Place) (back *hold) {
	if q.unbind(p); q.first() != p {
		return q.release(p)
	}
	back = q.releaseBound()
	q.bound = p.hold
	return back
}

// anew takes all holds if others pass a place to which an option is closed: they may hold what it would get.
func (q *Queue) anew(now int64) (holds []*hold) {
	if !q.several || len(q.passed) == 0 || now < q.renewed || !q.stale() {
		return nil // two queues at the same limits would have each other look without end
	}
	q.renewed = add(now, soon)
	for _, p := range slices.Clone(q.passed) {
		holds = append(holds, q.release(p))
	}
	return append(holds, q.releaseBound())
}

// stale reports whether something has changed since a place that others pass was bound.
func (q *Queue) stale() bool {
	version := q.version.Load()
	return slices.ContainsFunc(q.passed, func(p *Place) bool { return p.hold.version != version })
}

func (q *Queue) releaseBound() *hold {
	if q.bound == nil {
		return nil
	}
	return q.release(q.bound.place)
}

func (q *Queue) unbind(p *Place) {
	if q.bound != nil && q.bound.place == p {
		q.bound = nil
	}
	if p.entry.Passed {
		p.entry.Passed = false
		q.passed = slices.DeleteFunc(q.passed, func(other *Place) bool { return other == p })
	}
}

// release takes and returns the hold of a place that nobody passes any more.
func (q *Queue) release(p *Place) *hold {
	if p.state != bound {
		return nil
	}
	h := p.hold
	q.unbind(p)
	p.state, p.hold = waiting, nil
	return h
}
