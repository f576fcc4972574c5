package window

import "github.com/nextfree/pace/internal/saturate"

// The time of a request is the earliest one, from that of the request in front of it on, at which
// the stretch of per that ends there has room. So it takes two marks that move through the list:
// the request, and the oldest one in that stretch; beside them the number of permits between
// the two is kept. Each request is passed once by each mark, so a queue's times cost no more than a pass
// over it. If something changes, the marks go back there, and the times behind are worked out
// when they are needed.

// place works out the time of the first request whose time is not known.
func (l *ledger) place() {
	r := l.ring.at(l.placed)
	r.at = l.spot(r.permits, r.rule)
	l.placed++
	l.held.add(r.permits)
}

// unplace forgets the times from the i-th request on.
func (l *ledger) unplace(i int) {
	for l.placed > i {
		l.placed--
		if l.placed < l.oldest {
			l.oldest = l.placed
		} else {
			l.held.sub(l.ring.at(l.placed).permits)
		}
	}
}

// next returns when a request would go that is made now.
func (l *ledger) next(permits uint64, by *rule) int64 {
	for l.placed < l.ring.length {
		l.place()
	}
	return l.spot(permits, by)
}

// spot returns when a request goes that is behind all whose times are known. A charge waits for no
// room. A request for more than the window, which was larger when it was made, goes when the
// window is empty.
func (l *ledger) spot(permits uint64, by *rule) (at int64) {
	at = l.floor
	if l.placed > 0 {
		at = max(at, l.ring.at(l.placed-1).at)
	}
	if by == nil {
		return at
	}
	at = max(at, l.stopped-l.rule.behind)
	room := by.size - min(permits, by.size)
	for {
		l.seek(at, by)
		if !l.held.exceeds(room) || at == never {
			return at
		}
		at = saturate.Add(l.ring.at(l.oldest).at, by.per)
	}
}

// seek moves the mark of the oldest request to the beginning of the stretch that ends at a time.
func (l *ledger) seek(end int64, by *rule) {
	before := max(end-by.per, by.since)
	for l.oldest < l.placed && l.ring.at(l.oldest).at <= before {
		l.held.sub(l.ring.at(l.oldest).permits)
		l.oldest++
	}
	for l.oldest > 0 && l.ring.at(l.oldest-1).at > before {
		l.oldest--
		l.held.add(l.ring.at(l.oldest).permits)
	}
}

// used returns how many permits the stretch up to now holds, if nobody waits.
func (l *ledger) used() *sum {
	l.seek(l.floor, l.rule)
	return &l.held
}

// waiting reports whether anybody waits.
func (l *ledger) waiting() bool { return l.gone < l.ring.length }

// advance lets all go whose time has come, and forgets those that have left the window.
func (l *ledger) advance(now int64) {
	clock := max(now, l.until) - l.rule.behind
	for l.waiting() {
		if l.gone == l.placed {
			l.place()
		}
		r := l.ring.at(l.gone)
		if r.at > clock || now < l.until && r.rule != nil {
			break
		}
		r.rule = l.rule
		l.gone++
	}
	l.floor = clock
	if !l.waiting() {
		l.longest = l.rule.per
	}
	// What went at this very moment stays, even if the window has no length: it may get one.
	for l.gone > 0 && l.ring.at(0).at <= clock-max(1, l.longest) {
		l.forget()
	}
}

// forget takes the oldest request, which has gone, off the list.
func (l *ledger) forget() {
	r := l.ring.at(0)
	l.forgot = r.number
	if r.permits == 0 {
		l.empty--
	}
	if l.oldest > 0 {
		l.oldest--
	} else {
		l.held.sub(r.permits)
	}
	l.gone--
	l.placed--
	l.ring.drop()
}

// tidy takes requests off the list that have no permits left: those at its end at once, so that the
// last one is one that counts; the others when they are more than half of it.
func (l *ledger) tidy() {
	n := l.ring.length
	for n > 0 && l.ring.at(n-1).permits == 0 {
		n--
		l.empty--
	}
	if 2*l.empty > n {
		n = l.squeeze(n)
	}
	l.ring.length = n
	l.gone, l.placed, l.oldest = min(l.gone, n), min(l.placed, n), min(l.oldest, n)
}

// squeeze takes all requests without permits out of the first n, and returns how many are left.
func (l *ledger) squeeze(n int) (kept int) {
	gone, placed, oldest := l.gone, l.placed, l.oldest
	for i := range n {
		r := *l.ring.at(i)
		if r.permits > 0 {
			*l.ring.at(kept) = r
			kept++
			continue
		}
		if i < gone {
			l.gone--
		}
		if i < placed {
			l.placed--
		}
		if i < oldest {
			l.oldest--
		}
	}
	l.empty = 0
	return kept
}
