package queue

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// Look looks after a change that the queue is not told of.
func (q *Queue) Look() {
	if q.version.Add(1); q.nested.Load() {
		q.tell()
	}
	q.lookSoon()
}

// A caller takes that many steps, and more only until its own place is bound, or not the first; a goroutine takes the
// rest.
const (
	enough  = 16
	forEver = math.MaxInt
)

// moment is how often a caller whose context has ended yields to the queue, which may have its permits.
const moment = 1000

// look does what there is to do, p's first. If the context ends while a limit blocks, it returns the cause, and the
// queue looks on.
func (q *Queue) look(ctx context.Context, p *Place) error {
	if !q.blocks {
		q.steps(p, enough)
		return nil
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		q.steps(p, 1)
	}()
	select {
	case <-looked:
		return nil
	case <-ctx.Done():
	}
	for range moment {
		select {
		case <-looked:
			return nil
		default:
			runtime.Gosched()
		}
	}
	return context.Cause(ctx)
}

func (q *Queue) lookSoon() {
	switch {
	case q.waiting.Load() == 0:
	case q.blocks:
		go q.steps(nil, forEver)
	default:
		q.steps(nil, enough)
	}
}

// steps takes at most so many, or as many as p needs. If there are more, a goroutine takes them.
func (q *Queue) steps(p *Place, most int) {
	q.binding.lock()
	defer q.binding.unlock()
	for n := 1; q.waiting.Load() > 0 && q.step(); n++ {
		if n >= most && q.decided(p) {
			go q.steps(nil, forEver)
			return
		}
	}
}

func (q *Queue) decided(p *Place) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return p == nil || p.state >= bound || q.first() != p
}

func (q *Queue) changed() {
	q.version.Add(1)
	q.lookSoon()
}

// poll looks if the bound place is due and no caller waits for it: the timer may be late.
func (q *Queue) poll() {
	if q.waiting.Load() == 0 {
		return
	}
	if q.blocks {
		q.refresh()
	}
	if q.due() {
		q.lookSoon()
	}
}

func (q *Queue) due() bool {
	q.lock()
	defer q.mu.Unlock()
	h := q.bound
	return h != nil && h.place.sleepers == 0 && h.delay() <= 0
}

type task struct {
	back *hold   // to give back; nil: none
	all  []*hold // to give back
	bind *Place
	hold *hold         // which is to be filled, or
	move bool          // given up for a better one
	left time.Duration // until it must go
	more bool
}

func (t *task) giveBack(h *hold) { t.back, t.more = h, true }

// step does the next thing; more: there may be another. The caller holds binding. A panic ends the first place.
func (q *Queue) step() (more bool) {
	defer func() {
		if value := recover(); value != nil {
			more = q.fail(caught(value))
		}
	}()
	if q.blocks {
		q.refresh()
	}
	var t task
	q.next(&t)
	if t.back != nil {
		t.back.cancel(false)
	}
	for _, h := range t.all {
		if h != nil {
			h.cancel(false)
		}
	}
	if t.bind != nil {
		q.bind(&t)
	}
	return t.more
}

func (q *Queue) fail(why error) (more bool) {
	q.mu.Lock()
	p := q.first()
	if p == nil {
		q.mu.Unlock()
		return false
	}
	h := q.leave(p, why, true)
	q.mu.Unlock()
	if h != nil {
		h.cancel(false)
	}
	return true
}

// next decides what to do, and does what needs no limit.
func (q *Queue) next(t *task) {
	now := q.lock()
	defer q.mu.Unlock()
	if h := q.expire(now); h != nil {
		t.giveBack(h)
		return
	}
	if t.all = q.anew(now); t.all != nil {
		t.more = true
		return
	}
	for _, p := range q.passed {
		if q.advance(now, p, t) {
			return
		}
	}
	first := q.first()
	if h := q.bound; h != nil && h.place != first {
		t.giveBack(q.releaseBound())
		return
	}
	if first != nil && q.advance(now, first, t) {
		return
	}
	if t.more = first != nil && first.hold != nil && q.letsPass(first); !t.more {
		q.arm(now)
	}
}

// advance does a place's next thing, and reports whether there was any.
func (q *Queue) advance(now int64, p *Place, t *task) bool {
	h := p.hold
	if h == nil {
		if q.asksLater(now, p) {
			return false
		}
		q.binds(now, p, t)
		return true
	}
	if p.entry.Passed && h.own() && !q.order.StillFirst(&p.entry) || p.closed(h.option) {
		t.giveBack(q.release(p))
		return true
	}
	delay := h.delay()
	if t.move = q.better(h); t.move {
		q.binds(now, p, t)
		return true
	}
	switch {
	case delay > h.slack:
		if !h.needsRest(now, delay) {
			return false
		}
		q.binds(now, p, t)
	case p.entry.Passed && !h.full:
		t.giveBack(q.rejoin(p))
	case h.full:
		h.renew()
		q.grant(now, h, delay)
		t.more = true
	default:
		h.version = q.version.Load() - 1 // another option may be earlier by now
		q.binds(now, p, t)
	}
	return true
}

func (q *Queue) asksLater(now int64, p *Place) bool {
	return q.distant && now < q.askFrom() || p.early && q.leaving > 0
}

// needsRest reports whether a change has made a hold due at its place's deadline: see justInTime.
func (h *hold) needsRest(now int64, delay time.Duration) bool {
	p := h.place
	return !h.full && !p.entry.Passed && len(h.parts) > 1 && p.latest < never && add(now, delay) == p.latest
}

// askFrom returns when to ask a distant limit: shortly before it grants, since a change of the first costs two calls.
func (q *Queue) askFrom() int64 { return saturate.Add(q.notBefore, -2*q.cost-int64(soon)) }

const soon = time.Millisecond
