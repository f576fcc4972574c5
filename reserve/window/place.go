package window

import "github.com/nextfree/pace/internal/saturate"

// To compute the times of a queue, two marks move through the list: a request, and the oldest request in the stretch
// that ends at it. The ledger keeps the sum of the permits between them. So all times take one pass. When a request
// changes, the marks go back to it, and the times behind are computed again when they are needed.

func (l *ledger) place() {
	r := l.ring.at(l.placed)
	r.at = l.spot(r.permits, r.config)
	l.placed++
	l.held.add(r.permits)
}

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

func (l *ledger) next(permits uint64, by *config) int64 {
	for l.placed < l.ring.length {
		l.place()
	}
	return l.spot(permits, by)
}

// spot returns when a request behind those with known times is granted. A charge (by is nil) needs no room. A request
// for more than the shrunk window is granted when the window is empty.
func (l *ledger) spot(permits uint64, by *config) (at int64) {
	at = l.floor
	if l.placed > 0 {
		at = max(at, l.ring.at(l.placed-1).at)
	}
	if by == nil {
		return at
	}
	at = max(at, l.stopped-l.config.behind)
	room := by.size - min(permits, by.size)
	for {
		l.seek(at, by)
		if held := l.heldAt(at, by); !held.exceeds(room) || at == never {
			return at
		}
		at = l.leaves(at, by)
	}
}

// heldAt returns the permits in the stretch that ends at a time, as if all use were over now.
func (l *ledger) heldAt(end int64, by *config) sum {
	held := l.held
	held.plus(l.uses.held)
	if end < saturate.Add(l.uses.now, by.per) {
		held.plus(l.uses.out)
	}
	return held
}

// leaves returns when the stretch's oldest permits leave it.
func (l *ledger) leaves(end int64, by *config) int64 {
	oldest := int64(never)
	if l.uses.out != (sum{}) && end < saturate.Add(l.uses.now, by.per) {
		oldest = l.uses.now
	}
	if l.oldest < l.placed {
		oldest = min(oldest, l.ring.at(l.oldest).at)
	}
	if u := &l.uses; u.first < len(u.ended) {
		oldest = min(oldest, u.ended[u.first].at)
	}
	return saturate.Add(oldest, by.per)
}

// seek moves the oldest request's mark to the stretch's beginning.
func (l *ledger) seek(end int64, by *config) {
	before := max(end-by.per, by.since)
	for l.oldest < l.placed && l.ring.at(l.oldest).at <= before {
		l.held.sub(l.ring.at(l.oldest).permits)
		l.oldest++
	}
	for l.oldest > 0 && l.ring.at(l.oldest-1).at > before {
		l.oldest--
		l.held.add(l.ring.at(l.oldest).permits)
	}
	l.uses.seek(before)
}

func (l *ledger) used() sum {
	l.seek(l.floor, l.config)
	return l.heldAt(l.floor, l.config)
}

func (l *ledger) waiting() bool { return l.granted < l.ring.length }

func (l *ledger) advance(now int64) {
	clock := max(now, l.until) - l.config.behind
	if l.uses.now = clock; l.uses.out != (sum{}) {
		l.unplace(l.granted)
	}
	for l.waiting() {
		if l.granted == l.placed {
			l.place()
		}
		r := l.ring.at(l.granted)
		if r.at > clock || now < l.until && r.config != nil {
			break
		}
		r.config = l.config
		l.granted++
	}
	l.floor = clock
	if !l.waiting() {
		l.longest = l.config.per
	}
	// A request granted at this moment stays, even if the window has no length: it may get one.
	for l.granted > 0 && l.ring.at(0).at <= clock-max(1, l.longest) {
		l.forget()
	}
	l.uses.forget(clock - max(1, l.longest))
}

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
	l.granted--
	l.placed--
	l.ring.drop()
}

// tidy removes requests without permits: at the end at once, elsewhere when they are more than half.
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
	l.granted, l.placed, l.oldest = min(l.granted, n), min(l.placed, n), min(l.oldest, n)
}

func (l *ledger) squeeze(n int) (kept int) {
	gone, placed, oldest := l.granted, l.placed, l.oldest
	for i := range n {
		r := *l.ring.at(i)
		if r.permits > 0 {
			*l.ring.at(kept) = r
			kept++
			continue
		}
		if i < gone {
			l.granted--
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
