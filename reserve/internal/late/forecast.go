package late

import (
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

// remaining returns how long the place may still wait.
func (p *Place) remaining(now int64) time.Duration {
	if p.latest() == never {
		return reserve.Forever
	}
	return max(0, time.Duration(saturate.Add(p.latest(), -now)))
}

// hopeless reports whether expire would refuse a place. The queue must be locked.
func (q *Queue) hopeless(now int64) bool {
	for i := range q.lapse {
		if h := q.lapse[i]; len(h) > 0 && q.best(now, h[0]) > h[0].latest() {
			return true
		}
	}
	return false
}

// expire refuses places that are certain to be too late. If one of them was bound it returns the hold, for the caller
// to cancel. The queue must be locked.
func (q *Queue) expire(now int64) *hold {
	for i := range q.lapse {
		for h := &q.lapse[i]; len(*h) > 0; {
			p := (*h)[0]
			best := q.best(now, p)
			if best <= p.latest() {
				break
			}
			held := q.leave(p, p.late(now, time.Duration(best-now)))
			q.order.Lapsed(now, p)
			if held != nil {
				return held
			}
		}
	}
	return nil
}

// best returns the earliest time at which a place can go. The queue must be locked.
func (q *Queue) best(now int64, p *Place) int64 {
	h := q.bound
	switch {
	case h == nil:
		return now
	case h.place == p:
		return add(now, h.delay())
	}
	if !q.target.paidLater() && p.Permits+p.Leave < h.place.Permits+h.place.Leave {
		return now
	}
	at := add(now, h.delay())
	rate := q.target.certain()
	if rate == 0 || !q.order.Above(h.place, p) {
		return at
	}
	before := q.order.Before(now, p)
	if !q.target.paidLater() {
		before += p.Permits - h.place.Permits // the bound one is paid for by then
	}
	return add(at, time.Duration(float64(before)/rate*float64(time.Second)))
}

// base returns how long the limit grants nothing, by what the queue knows. The queue must be locked.
func (q *Queue) base(now int64) time.Duration {
	switch {
	case q.bound != nil:
		return q.bound.delay()
	case q.remote:
		return time.Duration(max(0, saturate.Add(q.notBefore, -now)))
	}
	return 0
}

// inTime reports whether a waiting place would go in time even if all that may go before it do. That is quick to know.
// The queue must be locked.
func (q *Queue) inTime(now int64, p *Place) bool {
	atMost := q.order.AtMost(now, p)
	if q.bound != nil {
		atMost -= q.bound.place.Permits
	}
	wait := q.target.forecast(func(yield func(int) bool) {
		if atMost > 0 {
			yield(atMost)
		}
	}, q.bound, q.base(now), p)
	return add(now, wait) <= p.latest()
}

// forecast returns how long a waiting place would wait if no other arrived. The queue must be locked.
func (q *Queue) forecast(p *Place) time.Duration {
	now := q.now()
	h := q.bound
	return q.target.forecast(func(yield func(int) bool) {
		for other := range q.order.Ahead(now, p) {
			if (h == nil || other != h.place) && !yield(other.Permits) {
				return
			}
		}
	}, h, q.base(now), p)
}
