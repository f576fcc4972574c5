package late

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// Look has the queue look at once, for a caller that knows that a limit has changed of which the queue can't know.
func (q *Queue) Look() {
	q.epoch.Add(1)
	q.look()
}

// look binds the place that is the first now, and grants places whose time has come.
func (q *Queue) look() {
	q.binding.lock()
	defer q.binding.unlock()
	for q.step() {
	}
}

// lookFor has the queue look, for a caller with that context. Where a limit may block this may take long: if the context
// ends meanwhile, it returns the cause, and the queue looks on.
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

// lookSoon has the queue look, for a caller to whom it does not matter when: elsewhere, where a limit may block.
func (q *Queue) lookSoon() {
	if q.blocks {
		go q.look()
	} else {
		q.look()
	}
}

// step does the next thing that is to be done, and reports whether there may be another one. Only the holder of binding
// calls it.
func (q *Queue) step() (more bool) {
	q.mu.Lock()
	now := q.now()
	if h := q.expire(now); h != nil {
		q.mu.Unlock()
		q.cancel(h)
		return true
	}
	h := q.bound
	q.retry = never
	first := q.choose(now)
	switch {
	case first == nil:
		q.arm(now)
		q.mu.Unlock()
		return false
	case h != nil && (h.place != first || q.target.better(h)):
		q.release(h.place)
		q.mu.Unlock()
		q.cancel(h)
		return true
	case h != nil && h.delay() <= 0:
		return q.grant(now, h)
	case h != nil:
		q.arm(now)
		q.mu.Unlock()
		return false
	case q.remote && now < q.askFrom():
		q.arm(now)
		q.mu.Unlock()
		return false
	}
	remaining := first.remaining(now)
	q.mu.Unlock()
	q.bind(first, first.Leave > 0, remaining, false)
	return true
}

// grant lets the bound place go, unless its hold is a trial: then it is replaced by one for what the place asks. The
// queue must be locked, and is unlocked then.
func (q *Queue) grant(now int64, h *hold) (more bool) {
	p := h.place
	if h.trial {
		q.release(p)
		q.mu.Unlock()
		q.cancel(h)
		q.bind(p, false, 0, true) // there is room for it now; if there is none any more, it stays waiting
		return true
	}
	q.bound = nil
	q.over(p)
	q.order.Grant(now, p)
	p.state, p.went = granted, now
	p.signal()
	if rate := q.target.spacing(); q.remote {
		q.notBefore = math.MinInt64
		if at := q.clock.Since(h.r.At()); rate > 0 && at > p.begin {
			q.notBefore = add(at, time.Duration(float64(time.Second)/rate))
		}
	}
	if p.extra > 0 {
		q.order.Settle(now, p, p.extra)
	}
	q.mu.Unlock()
	(*engine.Reservation)(&h.r).Count()
	if p.extra > 0 {
		h.r.Settle(p.Permits + p.extra)
	}
	if q.blocks { // the place that goes does not wait until the next one is bound
		if q.waiting.Load() > 0 {
			q.lookSoon()
		}
		return false
	}
	return true
}

// cancel cancels a hold that the queue has taken away, for a caller that looks again afterwards: so the watcher need
// not.
func (q *Queue) cancel(h *hold) {
	q.quiet.Store(true)
	defer q.quiet.Store(false)
	h.cancel()
}

// bind reserves in the name of a place, or makes a trial, and binds it, unless it has left meanwhile. If there is an
// error it takes the place out. But a place that has had its trial, and finds no room any more, stays.
func (q *Queue) bind(p *Place, trial bool, maxWait time.Duration, tried bool) {
	begin := q.clock.Now()
	complete := false
	defer func() {
		if !complete { // a panic
			q.fail(p, reserve.ErrCancelled)
		}
	}()
	ctx := context.Context((*placeContext)(p))
	if q.blocks {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		q.mu.Lock()
		if p.stop = stop; p.state >= granted { // it has left
			stop()
		}
		q.mu.Unlock()
	}
	h, err := q.target.reserve(ctx, p, trial, maxWait)
	complete = true
	q.mu.Lock()
	now := q.now()
	if q.remote {
		q.cost += (now - begin - q.cost) / 4
	}
	if err == nil && p.state == waiting {
		q.bound, p.hold, p.state = h, h, bound
		if h.delay() > 0 { // else it is granted at once
			p.signal()
		}
		q.mu.Unlock()
		return
	}
	var wait *reserve.WaitError
	late := errors.As(err, &wait)
	if late && add(now, wait.Wait) > p.latest() {
		err = p.late(now, wait.Wait)
	}
	q.mu.Unlock()
	switch {
	case err == nil:
		q.cancel(h)
	case !late || !tried:
		q.fail(p, err)
	}
}

// fail takes out a place with an error.
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

// choose returns which place to bind. That is the first one, or, if the permits that it must leave keep the first from
// going, one behind it that needs to leave fewer. The queue must be locked.
func (q *Queue) choose(now int64) (first *Place) {
	first = q.order.First(now, anyone)
	for first != nil && first.Leave > 0 {
		other := q.order.First(now, first.Leave)
		if other == nil {
			break
		}
		if h := q.bound; h != nil && h.place == first && h.trial {
			if d := h.delay(); d > 0 {
				first.blocked, first.epoch = add(now, d), q.epoch.Load()
			}
		}
		if first.epoch != q.epoch.Load() || now >= first.blocked {
			break
		}
		q.retry = min(q.retry, first.blocked)
		first = other
	}
	return first
}
