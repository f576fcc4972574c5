package model

// level is what the bucket holds now, by what is known now; negative in debt. It rises by a
// nanosecond each nanosecond, up to what it may hold, and falls by what each request came to when
// that went.
func (l *Limiter) level() float64 {
	level, at, capacity := l.start, 0.0, l.first
	before := 0.0 // when the one before went
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
			rise(until, max(capacity, head.cost()))
		} else {
			rise(until, capacity)
		}
		if i == len(l.past) {
			return level
		}
		if e := l.past[i]; e.went {
			level -= e.cost()
			before = e.at
		} else {
			level *= e.scale
			capacity = e.capacity
		}
	}
}

// headAfter is the request that went next after so many events, or waits to be the next. A charge
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
