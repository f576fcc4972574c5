package queue

// The methods in this file expect Queue.mu to be locked.

func (q *Queue) unbind(p *Place) {
	if q.bound != nil && q.bound.place == p {
		q.bound = nil
	}
	q.unpass(p)
}

// detach takes a waiting place's hold. Others may still pass it.
func (q *Queue) detach(p *Place) {
	if q.bound == p.hold {
		q.bound = nil
	}
	p.state, p.hold = waiting, nil
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

// leave takes out a place that is not granted, and returns its hold for left.
func (q *Queue) leave(p *Place, why error) *hold {
	if p.state >= granted {
		return nil
	}
	h := q.release(p)
	if h != nil {
		p.at = q.clock.Since(h.time())
	}
	q.unpass(p)
	if p.stop != nil {
		p.stop() // no caller waits for the limit's answer
	}
	q.over(p)
	q.order.Remove(q.now(), p)
	p.state, p.err = over, why
	p.signal()
	return h
}

func (q *Queue) over(p *Place) {
	p.lapse.Leave()
	if q.waiting.Add(-1) == 0 && q.timer != nil {
		q.timer.Stop()
		q.timer, q.timed = nil, never
	}
}

// lapses keeps the place among those with a deadline.
func (q *Queue) lapses(p *Place) {
	p.lapse.Key, p.lapse.Of = p.latest, p
	q.lapse[p.Group].Put(&p.lapse)
}

// left cancels a hold, nil if none, and looks.
func (q *Queue) left(h *hold) {
	if h != nil {
		h.cancel()
	}
	q.changed()
}

// gone is left without blocking.
func (q *Queue) gone(h *hold) {
	if h != nil && q.blocks {
		go q.left(h)
	} else {
		q.left(h)
	}
}
