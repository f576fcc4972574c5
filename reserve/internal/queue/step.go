package queue

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/nextfree/pace/reserve"
)

// Look makes the queue look at once, for a caller that knows that a limit has changed of which the queue can't know.
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

// lookFor makes the queue look, for a caller with that context. Where a limit may block this may take long: if the
// context ends meanwhile, it returns the cause, and the queue looks on.
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

// lookSoon makes the queue look, for a caller to whom it does not matter when: elsewhere, where a limit may block.
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
	if holds := q.anew(now); holds != nil {
		q.mu.Unlock()
		for _, h := range holds {
			q.cancel(h)
		}
		return true
	}
	for _, p := range q.passed {
		if q.advance(now, p) {
			return true
		}
	}
	first := q.order.First(now)
	if h := q.bound; h != nil && h.place != first {
		q.release(h.place)
		q.mu.Unlock()
		q.cancel(h)
		return true
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

// anew takes all holds away after a change, if others pass a place to which an option is closed: they may hold what it
// would get now. The queue must be locked.
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

// advance does the next thing for a place that is the first, or that others pass, and reports whether there was
// something to do. The queue must be locked, and is unlocked then.
func (q *Queue) advance(now int64, p *Place) bool {
	h := p.hold
	switch {
	case h == nil:
		if q.distant && now < q.askFrom() {
			return false
		}
		q.bind(p, nil, p.remaining(now))
	case p.pass == PassGroup && !q.stillFirst(now, p) || q.better(h):
		q.release(p)
		q.mu.Unlock()
		q.cancel(h)
	case h.delay() > h.slack() && !h.due: // if it is due, its limit has been paused meanwhile
		return false
	case p.pass != NoPass && !h.full:
		// What others don't need has room: now it is a request like others.
		q.unpass(p)
		if q.order.First(now) == p {
			q.bound, h = h, q.bound
			if h != nil {
				h.place.state, h.place.hold = waiting, nil
			}
		} else {
			q.release(p)
		}
		q.mu.Unlock()
		if h != nil {
			q.cancel(h)
		}
	case h.full && h.delay() <= h.slack():
		q.grant(now, h)
	default:
		q.detach(p)
		h.epoch = -1 // another option may be earlier by now
		q.bind(p, h, p.remaining(now))
	}
	return true
}

// mostPassed bounds how many places others pass.
const mostPassed = 16

// letsPass reports whether others pass a bound place from now on: because it waits for a limit of its own group, or
// because options are closed to it that may be open to others. The queue must be locked.
func (q *Queue) letsPass(p *Place) bool {
	h := p.hold
	limits := p.Options[h.option].Limits
	switch {
	case h.delay() <= h.slack() || p.pass != NoPass || len(q.passed) >= mostPassed:
		return false
	case !h.full && limits[h.last].Own:
		p.pass = PassGroup
	case p.partial(&limits[h.last]):
		p.pass = PassOne
	default:
		return false
	}
	q.passed = append(q.passed, p)
	q.bound = nil
	return true
}

// partial reports whether an option is closed to a place that does not have a limit.
func (p *Place) partial(l *Limit) bool {
	if p.Except != nil {
		for i := range p.Options {
			if p.Except(i) && len(p.Options[i].Limits) > 0 && !slices.ContainsFunc(p.Options[i].Limits, l.same) {
				return true
			}
		}
	}
	return false
}

// unpass ends that others pass a place. The queue must be locked.
func (q *Queue) unpass(p *Place) {
	if p.pass != NoPass {
		p.pass = NoPass
		q.passed = slices.DeleteFunc(q.passed, func(other *Place) bool { return other == p })
	}
}

// stillFirst reports whether a place that its group waits behind is still the first of its group.
func (q *Queue) stillFirst(now int64, p *Place) bool {
	p.pass = NoPass
	first := q.order.FirstOf(now, p)
	p.pass = PassGroup
	return first == p
}

// grant lets a bound place go. The queue must be locked, and is unlocked then.
func (q *Queue) grant(now int64, h *hold) {
	p := h.place
	q.unbind(p)
	q.over(p)
	q.order.Grant(now, p)
	p.state = granted
	p.went = add(now, h.delay())
	p.signal()
	if q.distant {
		q.notBefore = math.MinInt64
		rate := q.alone.rate()
		if at := q.clock.Since(h.time()); rate > 0 && at > p.begin {
			q.notBefore = add(at, time.Duration(float64(time.Second)/rate))
		}
	}
	if p.extra > 0 {
		q.order.Settle(now, p, p.extra)
	}
	q.mu.Unlock()
	h.granted()
	if p.extra > 0 {
		h.settle(p.Permits + p.extra)
	}
}

// cancel cancels a hold that the queue has taken away, for a caller that looks again afterwards: so the watcher need
// not.
func (q *Queue) cancel(h *hold) {
	q.quiet.Store(true)
	defer q.quiet.Store(false)
	h.cancel()
}

// bind reserves in the name of a place, or fills its hold, which nobody else knows then, and binds it, unless it has
// left meanwhile. If there is an error, or a panic, it takes the place out. The queue must be locked, and is unlocked.
func (q *Queue) bind(p *Place, h *hold, maxWait time.Duration) {
	begin := q.clock.Now()
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
	now := q.now()
	if q.distant {
		q.cost += (now - begin - q.cost) / 4
	}
	if err == nil && p.state == waiting {
		p.hold, p.state = h, bound
		if p.pass == NoPass {
			q.bound = h
		}
		if !h.full || h.delay() > 0 { // else it is granted at once
			p.signal()
		}
		q.mu.Unlock()
		return
	}
	var late *reserve.WaitError
	if errors.As(err, &late) && add(now, late.Wait) > p.latest() {
		err = p.late(now, late.Wait)
	}
	q.mu.Unlock()
	if err == nil {
		q.cancel(h)
	} else {
		q.fail(p, err)
	}
}

// attempt asks the caller what the place costs by now, and reserves. A panic of the caller's becomes an error.
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
