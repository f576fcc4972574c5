package queue

import (
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

func (q *Queue) changed() {
	q.epoch.Add(1)
	if q.waiting.Load() == 0 {
		return
	}
	q.mu.Lock()
	h := q.bound
	same := h != nil && h.place == q.order.First(q.now()) && !q.several && len(q.passed) == 0
	q.mu.Unlock()
	if !same {
		q.lookSoon()
	}
}

func (q *Queue) kick() {
	q.epoch.Add(1)
	if q.waiting.Load() > 0 && q.kicked.CompareAndSwap(false, true) {
		go func() {
			q.kicked.Store(false)
			q.look()
		}()
	}
}

// poll looks if the bound place is due and no caller waits for it.
func (q *Queue) poll() {
	q.mu.Lock()
	h := q.bound
	due := h != nil && h.place.sleepers == 0 && h.delay() <= 0
	q.mu.Unlock()
	if due {
		q.lookSoon()
	}
}

func (q *Queue) askFrom() int64 { return saturate.Add(q.notBefore, -2*q.cost-int64(soon)) }

const soon = time.Millisecond

// arm sets the timer to the next thing that no caller does.
func (q *Queue) arm(now int64) {
	if q.waiting.Load() == 0 {
		return
	}
	h := q.bound
	q.deaf.Store(h != nil && h.place.sleepers > 0 && !q.several && len(q.passed) == 0 && len(h.parts) == 1)
	at := q.order.Changes(now)
	for i := range q.lapse {
		if h := q.lapse[i]; len(h) > 0 {
			at = min(at, add(h[0].Key, 1))
		}
	}
	for _, p := range q.passed {
		at = min(at, q.alarmOf(now, p.hold))
	}
	switch {
	case h != nil:
		at = min(at, q.alarmOf(now, h))
	case q.distant:
		at = min(at, q.askFrom())
	}
	if at >= q.timed || at == never {
		return
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	q.timed = at
	d := max(0, time.Duration(at-now))
	if q.clock.Fake != nil {
		q.timer = (*q.clock.Fake).AfterFunc(d, q.alarm)
	} else {
		q.timer = time.AfterFunc(d, q.alarm)
	}
}

func (q *Queue) alarmOf(now int64, h *hold) int64 {
	if h == nil {
		return never
	}
	slack := h.slack()
	if slack == 0 && h.place.sleepers > 0 {
		return never
	}
	d := h.delay()
	if d == unknown {
		return never
	}
	if kindOf(h.place.Options[h.option].Limits[h.last].By) == foreign {
		d = max(d, soon) // it may be a forecast, which never comes true by itself
	}
	return add(now, max(0, d-slack/2))
}

func (q *Queue) alarm() {
	q.mu.Lock()
	q.timer, q.timed = nil, never
	q.mu.Unlock()
	if q.waiting.Load() > 0 {
		q.look()
	}
}
