package queue

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/nextfree/pace/internal/allornothing"
	"github.com/nextfree/pace/reserve"
)

// refresh asks promises of the user's for their delays, without the queue's lock.
func (q *Queue) refresh() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h := q.bound; h != nil {
		q.ask(h)
	}
	for i := 0; i < len(q.passed); i++ {
		q.ask(q.passed[i].hold)
	}
}

// ask unlocks the queue meanwhile.
func (q *Queue) ask(h *hold) {
	for i := 0; i < len(h.parts) && h.place.hold == h; i++ {
		r := h.parts[i].r
		if r == nil || !h.parts[i].foreign(&h.limits()[i]) {
			continue
		}
		due := q.promised(r)
		if h.place.hold == h && h.parts[i].r == r {
			h.parts[i].due = due
		}
	}
}

func (q *Queue) promised(r *reserve.Reservation) int64 {
	q.mu.Unlock()
	defer q.mu.Lock()
	return add(q.clock.Now(), r.Delay())
}

// binds begins to bind a place, with its hold, which it loses if it was passed and is not the first.
func (q *Queue) binds(now int64, p *Place, t *task) {
	passed := p.entry.Passed // release changes it
	h := q.release(p)
	if h != nil {
		p.at = add(now, h.delay())
	}
	if passed {
		if q.first() != p {
			t.giveBack(h)
			return
		}
		t.giveBack(q.releaseBound())
	}
	t.bind, t.hold, t.left, t.more = p, h, p.remaining(now), true
	p.state, p.until, q.asking, q.began = binding, p.latest, p, now
}

func (q *Queue) grant(now int64, h *hold, delay time.Duration) {
	p := h.place
	q.unbind(p)
	q.over(p)
	q.order.Grant(&p.entry)
	p.state = granted
	p.at, h.asked = add(now, delay), delay
	p.signal()
	if q.set.Granted != nil {
		q.set.Granted(p, h.option)
	}
	if q.distant {
		q.notBefore = math.MinInt64
		if rate, at := q.rateOf(q.alone), h.time(); rate > 0 && at > p.begin {
			q.notBefore = add(at, time.Duration(float64(time.Second)/rate))
		}
	}
}

// bind reserves for a place, or fills its hold. An error or a panic ends the place.
func (q *Queue) bind(t *task) {
	p := t.bind
	if !q.blocks {
		h, err := q.attempt((*placeContext)(p), p, t)
		if back := q.bindTo(p, h, err, 0); back != nil {
			back.cancel(false)
		}
		return
	}
	ctx, stop := context.WithCancel((*placeContext)(p))
	defer stop()
	begin := q.clock.Now()
	over := make(chan struct{})
	defer close(over)
	q.mu.Lock()
	p.asks = &asks{stop, over}
	q.mu.Unlock()
	back, err := q.attempt(ctx, p, t)
	defer func() { // also where the user's clock panics
		if back != nil {
			back.cancel(false)
		}
	}()
	back = q.bindTo(p, back, err, begin)
}

// bindTo gives a place its hold, or returns what is to be given back.
func (q *Queue) bindTo(p *Place, h *hold, err error, begin int64) (back *hold) {
	if q.blocks {
		q.lock()
	} else {
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	now := q.seen
	if q.asking = nil; q.blocks {
		q.cost += (now - begin - q.cost) / 4
	}
	if p.state != binding { // it has left meanwhile
		return h
	}
	p.state = waiting
	switch {
	case err != nil:
		return q.fails(now, p, err)
	case p.resized > 0:
		q.resize(p, p.resized)
		p.resized = 0
		return h
	}
	p.hold, p.state = h, bound
	if !p.entry.Passed {
		q.bound = h
	}
	if h.full && h.asked <= h.slack && !p.entry.Passed && q.first() == p && !p.closed(h.option) {
		q.grant(now, h, h.asked)
	} else {
		p.signal()
	}
	return nil
}

// fails ends a place whose limits have refused it, unless others are about to give back what they left.
func (q *Queue) fails(now int64, p *Place, err error) *hold {
	var late *reserve.WaitError
	if errors.As(err, &late) {
		if p.early = q.leaving > 0 && now < p.latest; p.early {
			return nil
		}
		if add(now, late.Wait) > p.latest {
			name := late.Limit
			if allornothing.IsNumber(name) { // of a part of an All, which the caller may know by a name
				name = ""
			}
			err = p.lateAt(name, now, late.Wait)
		}
	}
	return q.leave(p, err, true)
}

func (q *Queue) attempt(ctx context.Context, p *Place, t *task) (h *hold, err error) {
	defer func() {
		if value := recover(); value != nil {
			h, err = nil, caught(value)
		}
		if err != nil && t.hold != nil {
			t.hold.cancel(false)
		}
	}()
	if p.Renew != nil {
		if err = p.Renew(); err != nil {
			return nil, err
		}
	}
	if t.hold == nil || t.move {
		return q.reserve(ctx, p, t.hold, t.left)
	}
	return t.hold, t.hold.fill(ctx, t.left)
}
