package model

// level is what the bucket holds now, by what is known now; negative in debt. It rises by a
// nanosecond each nanosecond, up to what it may hold, and falls by what each request came to when
// that was granted.
func (l *Limiter) level() float64 {
	level, _ := l.replay()
	return level
}

// replay returns the level, and what each request comes to, by its number.
func (l *Limiter) replay() (level float64, costs map[int]float64) {
	level, at, capacity := l.start, 0.0, l.first
	before := 0.0 // when the one before was granted
	costs = map[int]float64{}
	for _, e := range l.past {
		if e.went {
			costs[e.id] = e.cost()
		}
	}
	for _, r := range l.line {
		costs[r.id] = r.cost()
	}
	rise := func(to, holds float64) {
		if to > at {
			level += to - at
			at = to
		}
		level = min(level, holds)
	}
	for i := 0; ; i++ {
		until := l.now
		if i < len(l.past) {
			until = l.past[i].at
		}
		if head, ok := l.headAfter(i); ok && l.config.Upfront {
			// One that needs more than the bucket holds has a larger bucket while it is the head.
			if from := max(head.asked, before); from >= at {
				rise(min(from, until), capacity)
			}
			rise(until, max(capacity, costs[head.id]))
		} else {
			rise(until, capacity)
		}
		if i == len(l.past) {
			return level, costs
		}
		if e := l.past[i]; e.went {
			level -= costs[e.id]
			before = e.at
		} else {
			// What is stored is permits, which scale with the capacity. A debt scales only by Retime. What a waiting request had
			// collected by then is stored, and the rest of what it needs is like a debt.
			for id, collected := range e.collected {
				collected = min(costs[id], collected)
				costs[id] = collected*e.storeScale + (costs[id]-collected)*e.debtScale
			}
			level = max(0, level)*e.storeScale + min(0, level)*e.debtScale
			capacity = e.capacity
		}
	}
}

// headAfter is the request that was granted next after so many events, or waits to be the next. A charge
// is none, since it never waits for the bucket.
func (l *Limiter) headAfter(events int) (request, bool) {
	for _, e := range l.past[events:] {
		if e.went {
			return e.request, !e.charge
		}
	}
	if len(l.line) > 0 {
		return l.line[0], !l.line[0].charge
	}
	return request{}, false
}
