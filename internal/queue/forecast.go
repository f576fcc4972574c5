package queue

// The methods in this file expect Queue.mu to be locked.

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/nextfree/pace/internal/order"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

// hopeless returns a place that is certain to be too late, and its earliest time; or nil.
func (q *Queue) hopeless(now int64) (*Place, int64) {
	for _, lapse := range q.deadlines {
		if len(lapse) > 0 {
			best := q.best(now, lapse[0].Of)
			if q.blocks && best > now {
				best-- // the delay of another queue's promise is at least 1 ns until it is granted
			}
			if best > lapse[0].Key {
				return lapse[0].Of, best
			}
		}
	}
	return nil, 0
}

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
		held = q.leave(p, p.late(now, wait), true)
	}
	return held
}

// best returns a place's earliest time: behind the hold of the first, and the places that certainly go before it.
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
	case h.place == p && len(p.Options) > 1:
		return add(now, slices.MinFunc(q.choices(p, h, now), byWait).wait)
	case h.place == p:
		return add(now, d)
	case q.several || p.entry.Passed || len(p.Options) != 1 || len(p.Options[0].Limits) != len(h.parts):
		return now
	}
	l := &p.Options[0].Limits[h.last]
	own, its := l.permits(p), h.place.Options[0].Limits[h.last].permits(h.place)
	if q.alone != nil && l.local() != nil && !isWindow(l) {
		if ahead, ok := q.order.Certain(&h.place.entry, &p.entry); ok {
			return add(now, q.behind(l, nil, float64(ahead)-float64(its), own, d))
		}
	}
	if l.Own || own < its && q.sizeMatters(l, own, its) { // that may be free earlier
		return now
	}
	return add(now, d)
}

// sizeMatters reports whether a limit may have fewer permits earlier than more.
func (q *Queue) sizeMatters(l *Limit, fewer, more int) bool {
	if l.local() == nil || isWindow(l) {
		return true
	}
	early, _ := l.wait(q, q.seen, 0, fewer)
	late, err := l.wait(q, q.seen, 0, more)
	return early < late || err != nil
}

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

// forecast returns a waiting place's wait if no other arrives.
func (q *Queue) forecast(p *Place) (longest time.Duration) {
	now := q.seen
	all, ofClass := q.order.Ahead(&p.entry)
	if len(p.Options) > 1 {
		held := 0.0
		if p.told() {
			held, _ = q.held(p, anyLimit)
		}
		return q.fillUp(p, max(0, all[order.OfPermits]-held))
	}
	base := q.base(now)
	limits := p.Options[0].Limits
	for i := range limits {
		l := &limits[i]
		ahead := &all
		if l.Own {
			ahead = &ofClass
		}
		held, holders := q.held(p, i)
		places := ahead[order.OfPlaces] - holders
		sum := ahead[min(i, order.Tracked)] - held
		if i >= order.Tracked { // of the places' own permits: the others ask as large a part of these as p does
			sum *= float64(l.permits(p)) / float64(max(1, p.Permits))
		}
		var sizes iter.Seq[int]
		if sum != places && places <= manySizes && isWindow(l) {
			sizes = q.sizes(p, i, sum)
		}
		longest = max(longest, q.behind(l, sizes, max(0, sum), l.permits(p), base))
	}
	return longest
}

const anyLimit = -1

// held returns the permits that other places hold at a limit, and how many places do.
func (q *Queue) held(p *Place, limit int) (permits, places float64) {
	own := limit != anyLimit && p.Options[0].Limits[limit].Own
	count := func(other *Place) {
		switch {
		case other == p || own && other.Class != p.Class:
		case limit == anyLimit:
			permits += float64(other.entry.Asked(order.OfPermits))
		case other.hold.has(limit):
			permits += float64(other.entry.Asked(min(limit, order.Tracked)))
			places++
		}
	}
	if q.bound != nil {
		count(q.bound.place)
	}
	for _, other := range q.passed {
		count(other)
	}
	return permits, places
}

// manySizes is from where a forecast at a window takes all requests for small ones: no step is long.
const manySizes = 1000

// sizes returns what the places before p have yet to reserve at a limit, up to a sum.
func (q *Queue) sizes(p *Place, limit int, sum float64) iter.Seq[int] {
	return func(yield func(int) bool) {
		left := sum
		for other := range q.order.Before(&p.entry, p.Options[0].Limits[limit].Own) {
			n := other.toReserve(limit)
			if left -= float64(n); n > 0 && !yield(n) || left <= 0 {
				return
			}
		}
	}
}

func (p *Place) toReserve(limit int) int {
	limits := p.Options[0].Limits
	if limit >= len(limits) || p.hold != nil && p.hold.has(limit) {
		return 0
	}
	return limits[limit].permits(p)
}

// behind returns n permits' wait behind requests of those sizes (nil: small ones) and that sum, the first of which
// waits at least after.
func (q *Queue) behind(l *Limit, sizes iter.Seq[int], sum float64, n int, after time.Duration) (wait time.Duration) {
	by := l.local()
	if by == nil {
		if wait, _ = l.wait(q, q.seen, 0, n); wait == unknown {
			wait = 0
		}
		wait = max(wait, after)
		if rate := q.rateOf(l); rate > 0 {
			wait = add(wait, seconds(sum/rate))
		}
		return wait
	}
	if sizes == nil {
		if isWindow(l) {
			if _, err := by.BehindAt(q.at(q.seen), nil, math.MaxInt); tooMany(err) > 0 { // no quota by the calendar
				return max(by.ForecastAt(q.at(q.seen), whole(sum)+min(n, tooMany(err))), after)
			}
		}
		sizes = once(whole(sum))
	}
	wait, err := by.BehindAt(q.at(q.seen), sizes, n)
	if most := tooMany(err); most > 0 && l.Clip {
		wait, err = by.BehindAt(q.at(q.seen), sizes, most)
	}
	if err != nil {
		return reserve.Forever
	}
	return max(wait, after)
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), float64(math.MaxInt64/2)))
}

// whole rounds a sum of permits up.
func whole(sum float64) int { return int(math.Ceil(sum - 1e-6)) }

func add[T int64 | time.Duration](t T, d time.Duration) T { return saturate.Add(t, T(d)) }

func isWindow(l *Limit) bool {
	by := l.local()
	return by != nil && by.Latest().Window
}

func once(size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if size > 0 {
			yield(size)
		}
	}
}

// fillUp returns a wait behind permits: each option grants at its rate after its own wait.
func (q *Queue) fillUp(p *Place, permits float64) time.Duration {
	all := q.choices(p, nil, q.seen)
	slices.SortFunc(all, byWait)
	rate, granted := 0.0, 0.0
	for i, o := range all {
		if o.wait >= someday {
			break
		}
		one := p.rate(&p.Options[o.option])
		if one == 0 { // it is not known, or there is no limit
			return o.wait
		}
		rate += one
		until := reserve.Forever
		if i+1 < len(all) {
			until = all[i+1].wait
		}
		if filled := add(o.wait, seconds((permits-granted)/rate)); filled <= until {
			return filled
		}
		granted += rate * (until - o.wait).Seconds()
	}
	if all[0].wait == someday {
		return 0
	}
	return all[0].wait
}
