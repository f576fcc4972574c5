package queue

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/nextfree/pace/reserve"
)

// Look looks after a change of a limit that the queue does not watch.
func (q *Queue) Look() {
	q.epoch.Add(1)
	q.look()
}

func (q *Queue) look() {
	q.binding.lock()
	defer q.binding.unlock()
	for q.step() {
	}
}

// lookFor is look. If the context ends while a limit blocks, it returns the cause, and the queue looks on.
func (q *Queue) lookFor(ctx context.Context) error {
	if !q.blocks || ctx.Done() == nil {
		q.look()
		return nil
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		q.look()
	}()
	select {
	case <-looked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lookSoon is look, in a goroutine where a limit may block.
func (q *Queue) lookSoon() {
	if q.blocks {
		go q.look()
	} else {
		q.look()
	}
}

// step does the next thing; more: there may be another. The caller holds binding.
func (q *Queue) step() (more bool) {
	if q.waiting.Load() == 0 {
		return false
	}
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
	first := q.order.First(now)
	if h := q.bound; h != nil && h.place != first {
		return q.takeBack(q.release(h.place))
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
	for _, h := range holds {
		q.cancel(h)
	}
	return true
}

func (q *Queue) cancel(h *hold) {
	q.quiet.Store(true)
	defer q.quiet.Store(false)
	h.cancel()
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
	if p.pass == PassGroup && !q.stillFirst(now, p) || q.better(h) {
		return q.takeBack(q.release(p))
	}
	delay, slack := h.delay(), h.slack()
	switch {
	case delay > slack && !h.due: // if it is due, its limit has been paused meanwhile
		return false
	case p.pass != NoPass && !h.full:
		return q.rejoin(now, p)
	case h.full && delay <= slack:
		q.grant(now, h, delay)
	default:
		q.detach(p)
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
	q.order.Grant(now, p)
	p.state = granted
	p.at = add(now, delay)
	p.signal()
	if q.distant {
		q.notBefore = math.MinInt64
		rate := q.alone.rate()
		if at := q.clock.Since(h.time()); rate > 0 && at > p.begin {
			q.notBefore = add(at, time.Duration(float64(time.Second)/rate))
		}
	}
	extra := p.extra
	if extra > 0 {
		q.order.Settle(now, p, extra)
	}
	q.mu.Unlock()
	h.granted()
	if extra > 0 {
		h.settle(p.Permits + extra)
	}
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
	q.binds = true
	q.mu.Unlock()
	h, err := q.attempt(ctx, p, h, maxWait)
	q.mu.Lock()
	q.binds = false
	now := q.now()
	if q.distant {
		q.cost += (now - begin - q.cost) / 4
	}
	if err == nil && p.state == waiting {
		p.hold, p.state = h, bound
		if p.pass == NoPass {
			q.bound = h
		}
		if h.full && h.asked <= h.slack() && p.pass == NoPass && q.order.First(now) == p {
			q.grant(now, h, h.asked)
			return
		}
		p.signal()
		q.mu.Unlock()
		return
	}
	var late *reserve.WaitError
	if errors.As(err, &late) && add(now, late.Wait) > p.latest {
		err = p.late(now, late.Wait)
	}
	q.mu.Unlock()
	if err == nil {
		q.cancel(h)
	} else {
		q.fail(p, err)
	}
}

// attempt turns a panic into an error.
func (q *Queue) attempt(ctx context.Context, p *Place, old *hold, maxWait time.Duration) (h *hold, err error) {
	defer func() {
		if value := recover(); value != nil {
			h, err = nil, caught(value)
		}
	}()
	q.quiet.Store(true)
	defer q.quiet.Store(false)
	if p.Renew != nil {
		if err := p.Renew(); err != nil {
			if old != nil {
				old.cancel()
			}
			return nil, err
		}
	}
	if h = old; h == nil {
		return q.reserve(ctx, p, maxWait)
	}
	return h, h.fill(ctx, maxWait)
}

func (q *Queue) fail(p *Place, err error) {
	q.mu.Lock()
	if p.state < granted {
		q.order.Lapsed(q.now(), p)
	}
	h := q.leave(p, err)
	q.mu.Unlock()
	if h != nil {
		h.cancel()
	}
}
