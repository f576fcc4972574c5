package model

// level is what the bucket holds, by what is known now; negative in debt. It rises with time, up to what it may hold,
// and falls by each granted request's cost.
func (l *Limiter) level() float64 {
	level, _ := l.replay()
	return level
}

// replay returns the level, and each request's cost by number.
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
		holds, from := capacity, until
		if head, since, ok := l.headAfter(i); ok && l.config.Upfront {
			// A head that needs more than the bucket holds has a larger bucket.
			holds, from = max(holds, costs[head.id]-head.ahead), since
		}
		if need := l.needed(i); need > 0 {
			holds, from = max(holds, need), min(from, l.past[i].since)
		}
		sameLine := i > 0 && l.past[i-1].since == from
		if from = max(from, before); from > at || !sameLine && from == at {
			rise(min(from, until), capacity)
		}
		if from <= at || from < until {
			rise(until, holds)
		}
		if i == len(l.past) {
			return level, costs
		}
		if e := l.past[i]; e.went {
			level -= costs[e.id]
			before = e.at
		} else {
			level *= e.scale
			for id := range e.waited {
				costs[id] *= e.scale
			}
			if capacity = e.capacity; len(e.waited) == 0 {
				level = min(level, capacity)
			}
		}
	}
}

// needed is the head's need at a change of the rate: the bucket could hold it then, even if the head has left since.
func (l *Limiter) needed(i int) float64 {
	if !l.config.Upfront || i == len(l.past) || len(l.past[i].waited) == 0 {
		return 0
	}
	if head := l.find(l.past[i].head); head != nil && head.refunded {
		return 0
	}
	return l.past[i].need
}

// headAfter is the next request after so many events, granted or not, and since when any has waited without a break.
func (l *Limiter) headAfter(events int) (head request, since float64, ok bool) {
	for _, e := range l.past[events:] {
		if e.went {
			return e.request, e.since, true
		}
	}
	if len(l.line) > 0 {
		return l.line[0], l.since, true
	}
	return request{}, 0, false
}
