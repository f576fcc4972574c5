package queue

// The methods in this file expect Queue.mu to be locked.

import (
	"iter"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

// hopeless returns a place that is certain to be too late, and its earliest time; or nil.
func (q *Queue) hopeless(now int64) (*Place, int64) {
	for _, h := range q.lapse {
		if len(h) > 0 {
			if best := q.best(now, h[0].Of); best > h[0].Key {
				return h[0].Of, best
			}
		}
	}
	return nil, 0
}

// expire refuses the hopeless, and returns a bound one's hold.
func (q *Queue) expire(now int64) (held *hold) {
	for held == nil {
		p, best := q.hopeless(now)
		if p == nil {
			break
		}
		wait := time.Duration(best - now)
		if h := q.bound; h != nil && h.delay() == unknown {
			wait = unknown
		}
		held = q.leave(p, p.late(now, wait))
		q.order.Lapsed(now, p)
	}
	return held
}

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
	if q.alone != nil && kindOf(l.By) == local && !isWindow(l) {
		if ahead, ok := q.order.Certain(now, h.place, p); ok {
			return add(now, l.behind(once(ahead-its), own, d))
		}
	}
	if l.Own || own < its && !l.paidLater() {
		return now
	}
	return add(now, d)
}

// base returns how long the limit grants nothing.
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

// atMost returns a place's wait behind all that may go before it, and whether that is its forecast, in O(1).
func (q *Queue) atMost(now int64, p *Place) (longest time.Duration, exact bool) {
	if len(p.Options) > 1 {
		sum, exact := q.order.AtMost(now, p, OfPermits)
		return q.fillUp(p, sum.Int()), exact
	}
	limits, base := p.Options[0].Limits, q.base(now)
	exact = true
	for i := range limits {
		if i >= tracked {
			return reserve.Forever, false
		}
		l := &limits[i]
		sum, all := q.order.AtMost(now, p, i)
		places, _ := q.order.AtMost(now, p, ofPlaces)
		if h := q.bound; h != nil && h.place != p && h.has(i) {
			sum, places = h.place.Without(sum, i), h.place.Without(places, ofPlaces)
		}
		wait, sure := l.atMost(sum.Int(), sum == places, l.permits(p), base, &q.clock)
		longest = max(longest, wait)
		exact = exact && all && sure && !l.Own
	}
	return longest, exact
}

// forecast returns a waiting place's wait if no other arrives.
func (q *Queue) forecast(p *Place) (longest time.Duration) {
	now := q.now()
	wait, exact := q.atMost(now, p)
	switch {
	case exact:
		return wait
	case len(p.Options) > 1:
		sum := 0
		for other := range q.order.Ahead(now, p) {
			sum = int(saturate.Add(int64(sum), int64(other.Permits)))
		}
		return q.fillUp(p, sum)
	}
	base := q.base(now)
	limits := p.Options[0].Limits
	for i := range limits {
		longest = max(longest, limits[i].behind(q.sizes(now, p, i), limits[i].permits(p), base))
	}
	return longest
}

// sizes returns what the places before p have yet to reserve at a limit.
func (q *Queue) sizes(now int64, p *Place, limit int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for other := range q.order.Ahead(now, p) {
			limits := other.Options[0].Limits
			switch {
			case other.hold != nil && other.hold.has(limit):
			case limit >= len(limits) || limits[limit].Own && other.Group != p.Group:
			case !yield(limits[limit].permits(other)):
				return
			}
		}
	}
}

// fillUp returns a wait behind so many permits: each option grants at its rate after its own wait.
func (q *Queue) fillUp(p *Place, permits int) time.Duration {
	all := q.choices(p, nil)
	slices.SortFunc(all, byWait)
	rate, granted := 0.0, 0.0
	for i, o := range all {
		if o.wait >= someday {
			break
		}
		one := p.Options[o.option].rate(p)
		if one == 0 { // it is not known, or there is no limit
			return o.wait
		}
		rate += one
		until := reserve.Forever
		if i+1 < len(all) {
			until = all[i+1].wait
		}
		if filled := add(o.wait, seconds((float64(permits)-granted)/rate)); filled <= until {
			return filled
		}
		granted += rate * (until - o.wait).Seconds()
	}
	if all[0].wait == someday {
		return 0
	}
	return all[0].wait
}
