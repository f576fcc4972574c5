package queue

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

// Look looks after a change of a limit that the queue does not watch.
func (q *Queue) Look() {
	q.epoch.Add(1)
	_ = q.look(context.Background())
}

// look does what there is to do. If the context ends while a limit blocks, it returns the cause, and the queue looks
// on.
func (q *Queue) look(ctx context.Context) error {
	if !q.blocks {
		q.steps()
		return nil
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		q.steps()
	}()
	select {
	case <-looked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (q *Queue) steps() {
	q.binding.lock()
	defer q.binding.unlock()
	for q.waiting.Load() > 0 && q.step() {
	}
}

// lookSoon is look, in a goroutine where a limit may block.
func (q *Queue) lookSoon() {
	if q.blocks {
		go q.steps()
	} else {
		q.steps()
	}
}

// changed looks after a place or permits have gone.
func (q *Queue) changed() {
	q.epoch.Add(1)
	if q.waiting.Load() > 0 {
		q.lookSoon()
	}
}

// kick is changed for a caller that holds a limit's lock.
func (q *Queue) kick() {
	q.epoch.Add(1)
	if q.waiting.Load() > 0 && q.kicked.CompareAndSwap(false, true) {
		go func() {
			q.kicked.Store(false)
			q.steps()
		}()
	}
}

// poll looks if the bound place is due and no caller waits for it: the timer may be late.
func (q *Queue) poll() {
	q.mu.Lock()
	h := q.bound
	due := h != nil && h.place.sleepers == 0 && h.delay() <= 0
	q.mu.Unlock()
	if due {
		q.lookSoon()
	}
}

// step does the next thing; more: there may be another. The caller holds binding.
func (q *Queue) step() (more bool) {
	q.mu.Lock()
	now := q.now()
	if h := q.expire(now); h != nil {
		return q.takeBack(h)
	}
	if holds := q.anew(now); holds != nil {
		return q.takeBack(holds...)
	}
	for _, p := range q.passed {
		if q.advance(now, p) {
			return true
		}
	}
	first := q.order.first()
	if h := q.bound; h != nil && h.place != first {
		return q.takeBack(q.releaseBound())
	}
	if first != nil && q.advance(now, first) {
		return true
	}
	if first != nil && first.hold != nil && q.letsPass(first) {
		q.mu.Unlock()
		return true
	}
	q.arm(now)
	q.mu.Unlock()
	return false
}

// takeBack unlocks the queue, cancels holds and returns true.
func (q *Queue) takeBack(holds ...*hold) bool {
	q.mu.Unlock()
	q.quiet.Store(true)
	defer q.quiet.Store(false)
	for _, h := range holds {
		if h != nil {
			h.cancel()
		}
	}
	return true
}

// advance does a place's next thing. If it returns true, it has unlocked the queue.
func (q *Queue) advance(now int64, p *Place) bool {
	h := p.hold
	if h == nil {
		if q.distant && now < q.askFrom() {
			return false
		}
		q.bind(p, nil, p.remaining(now))
		return true
	}
	if p.passed && h.own() && !q.stillFirst(p) {
		return q.takeBack(q.release(p))
	}
	if now >= q.renewed && q.better(h) { // two queues at the same limits would give way to each other without end
		q.renewed = add(now, time.Millisecond)
		return q.takeBack(q.release(p))
	}
	switch delay := h.delay(); {
	case delay > h.slack:
		return false
	case p.passed && !h.full:
		return q.rejoin(p)
	case h.full:
		h.renew()
		q.grant(now, h, delay)
	default:
		q.release(p)
		h.epoch = -1 // another option may be earlier by now
		q.bind(p, h, p.remaining(now))
	}
	return true
}

// grant lets a bound place go, and unlocks the queue.
func (q *Queue) grant(now int64, h *hold, delay time.Duration) {
	p := h.place
	q.unbind(p)
	q.over(p)
	q.order.grant(p)
	p.state = granted
	p.at, h.asked = add(now, delay), delay
	p.signal()
	if q.set.Granted != nil {
		q.set.Granted(p, h.option)
	}
	if q.distant {
		q.notBefore = math.MinInt64
		rate := q.alone.rate()
		if at := q.clock.Since(h.time()); rate > 0 && at > p.begin {
			q.notBefore = add(at, time.Duration(float64(time.Second)/rate))
		}
	}
	q.mu.Unlock()
}

// bind reserves for a place, or fills its hold. An error or a panic ends the place. It unlocks the queue.
func (q *Queue) bind(p *Place, h *hold, maxWait time.Duration) {
	begin := q.seen
	ctx := context.Context((*placeContext)(p))
	if q.blocks {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		p.stop = stop
	}
	q.mu.Unlock()
	h, err := q.attempt(ctx, p, h, maxWait)
	q.mu.Lock()
	now := begin
	if q.blocks {
		now = q.now()
		q.cost += (now - begin - q.cost) / 4
	}
	switch {
	case p.state != waiting: // it has left meanwhile
		q.takeBack(h)
	case err != nil:
		var late *reserve.WaitError
		if errors.As(err, &late) && add(now, late.Wait) > p.latest {
			err = p.late(now, late.Wait)
		}
		q.takeBack(q.leave(p, err, true))
	default:
		p.hold, p.state = h, bound
		if !p.passed {
			q.bound = h
		}
		if h.full && h.asked <= h.slack && !p.passed && q.order.first() == p {
			q.grant(now, h, h.asked)
			return
		}
		p.signal()
		q.mu.Unlock()
	}
}

// attempt turns a panic into an error.
func (q *Queue) attempt(ctx context.Context, p *Place, old *hold, maxWait time.Duration) (h *hold, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
		if err != nil && old != nil {
			old.cancel()
		}
	}()
	q.quiet.Store(true)
	defer q.quiet.Store(false)
	if p.Renew != nil {
		if err = p.Renew(); err != nil {
			return nil, err
		}
	}
	if old == nil {
		return q.reserve(ctx, p, maxWait)
	}
	return old, old.fill(ctx, maxWait)
}

// askFrom returns when to ask a distant limit: shortly before it grants, since a change of the first costs two calls.
func (q *Queue) askFrom() int64 { return saturate.Add(q.notBefore, -2*q.cost-int64(soon)) }

const soon = time.Millisecond
