package queue

import "time"

// arm sets the timer to the next thing that no caller does. It needs the queue's lock.
func (q *Queue) arm(now int64) {
	h := q.bound
	at := q.order.Changes()
	for _, lapse := range q.deadlines {
		if len(lapse) > 0 {
			at = min(at, add(lapse[0].Key, 1))
		}
	}
	if q.several && now < q.renewed && q.stale() {
		at = min(at, q.renewed)
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
	if at >= q.timed || at == never || q.waiting.Load() == 0 {
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
	at := int64(never)
	if h.other != nil && h.other.due {
		at = max(h.other.at, add(now, 1))
	}
	if h.slack == 0 && h.place.sleepers > 0 {
		return at
	}
	d := h.delay()
	if d == unknown {
		return at
	}
	if of := h.limits()[h.last].By.Traits(); of.Blocks && !of.Distant && h.parts[h.last].foreign(&h.limits()[h.last]) {
		d = max(d, soon) // it may be a forecast, which never comes true by itself
	}
	return min(at, add(now, max(0, d-h.slack/2)))
}

func (q *Queue) alarm() {
	q.mu.Lock()
	q.timer, q.timed = nil, never
	q.mu.Unlock()
	q.steps(nil, forEver)
}
