package queue

import (
	"iter"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

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
			why := p.late(now, time.Duration(best-now))
			if h := q.bound; h != nil && h.delay() == unknown {
				why = p.late(now, unknown)
			}
			held := q.leave(p, why)
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
	if p.hold != nil {
		h = p.hold
	}
	if h == nil {
		return now
	}
	d := h.delay()
	switch {
	case d == unknown:
		return now
	case h.place == p:
		return add(now, d)
	case q.several || p.pass != NoPass || len(p.Options) != 1 || len(p.Options[0].Limits) != len(h.parts):
		return now
	}
	l := &p.Options[0].Limits[h.last]
	own, its := l.permits(p), h.place.Options[0].Limits[h.last].permits(h.place)
	later := l.paidLater()
	if !later && own < its || l.Own {
		return now
	}
	at := add(now, d)
	if q.alone == nil || kindOf(l.By) != local || !q.order.Above(h.place, p) || isWindow(l) {
		return at
	}
	before := q.order.Before(now, p)
	if !later {
		before += own - its // the bound one is paid for by then
	}
	if rate := l.rate(); rate > 0 {
		at = add(at, seconds(float64(before)/rate))
	}
	return at
}

// base returns how long the limit grants nothing, by what the queue knows. The queue must be locked.
func (q *Queue) base(now int64) (d time.Duration) {
	switch {
	case q.bound != nil:
		if d = q.bound.delay(); d == unknown {
			d = 0
		}
	case q.distant:
		d = time.Duration(max(0, saturate.Add(q.notBefore, -now)))
	}
	return d
}

// atMost returns how long a waiting place would wait if all that may go before it did, which is quick to know; and
// whether that is its forecast. At a window, sizes don't fill one up completely, but any two together. The queue must be
// locked.
func (q *Queue) atMost(now int64, p *Place) (longest time.Duration, exact bool) {
	exact = q.order.Last(p)
	if len(p.Options) > 1 {
		return q.fillUp(p, func(yield func(*Place) bool) {
			if n := q.order.AtMost(now, p, ofPermits).Int(); n > 0 {
				yield(&Place{Permits: n})
			}
		}), exact
	}
	limits, base := p.Options[0].Limits, q.base(now)
	for i := range limits {
		l := &limits[i]
		if i >= tracked {
			return reserve.Forever, false
		}
		sum := q.order.AtMost(now, p, i)
		if h := q.bound; h != nil && h.place != p && h.has(i) {
			sum = h.place.Without(sum, i)
		}
		n := sum.Int()
		longest = max(longest, l.behind(fill(n, l), l.permits(p), base))
		exact = exact && !isWindow(l)
	}
	return longest, exact
}

// forecast returns how long a waiting place would wait if no other arrived. The queue must be locked.
func (q *Queue) forecast(p *Place) (longest time.Duration) {
	now := q.now()
	if len(p.Options) > 1 {
		return q.fillUp(p, q.order.Ahead(now, p))
	}
	base := q.base(now)
	limits := p.Options[0].Limits
	for i := range limits {
		longest = max(longest, limits[i].behind(q.sizes(now, p, i), limits[i].permits(p), base))
	}
	return longest
}

// sizes returns what the places before p ask of a limit and have not reserved.
func (q *Queue) sizes(now int64, p *Place, limit int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for other := range q.order.Ahead(now, p) {
			if other.hold != nil && other.hold.has(limit) {
				continue
			}
			limits := other.Options[0].Limits
			if limit >= len(limits) || limits[limit].Own && other.Group != p.Group {
				continue
			}
			if !yield(limits[limit].permits(other)) {
				return
			}
		}
	}
}
