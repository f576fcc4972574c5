package smooth

import "math"

// While requests wait, the limiter is a bucket of time. Before next it is in debt; from then on its
// level is the time of the stored permits and the time since. The first in the queue goes when
// the bucket is not in debt, or, paid upfront, when it holds the amount of the request.

// promise returns when a request goes, from what is to be paid before it and its own amount.
func (l *Ledger) promise(before, own int64) int64 {
	wait := before
	if l.upfront {
		wait = later(before, own)
	}
	if saved := l.saved(); saved > 0 {
		wait, _ = whole(max(0, float64(wait)-saved))
	}
	return max(later(l.next, wait), l.until)
}

// saved returns the time of the stored permits.
func (l *Ledger) saved() float64 { return l.curve.span(l.stored) }

// letGo lets the requests go whose time has come, each at its time.
func (l *Ledger) letGo(now int64) {
	for b := l.book; b.skip(); {
		i := b.queue.gone + 1
		amount, asked, went := b.queue.amount(i), b.queue.time(i), b.front
		if asked != charged {
			if went = max(went, l.promise(0, amount)); went > now {
				b.due = went
				return
			}
		}
		if amount > 0 {
			l.spend(b.queue.first+uint64(i-1), amount, asked, went)
		}
		b.queue.pop(went)
		b.front = went
	}
}

// skip passes over requests that were given up, and reports whether any other waits.
func (b *book) skip() bool {
	for !b.queue.empty() && b.queue.time(b.queue.gone+1) == left {
		b.queue.pop(left)
	}
	return !b.queue.empty()
}

// spend takes the amount of a request out of the bucket when it goes.
func (l *Ledger) spend(number uint64, amount, asked, went int64) {
	b, origin := l.book, l.origin(went)
	saved := l.saved()
	if origin > l.next {
		saved += float64(origin - l.next)
		l.next = origin
	}
	limit := l.limit(amount, asked, went)
	saved = min(saved, limit)
	b.rooms.push(number, limit-saved+float64(l.next-origin))
	b.last = l.bucket(went)
	rest := float64(amount) - saved
	switch {
	case saved == 0: // by far most often, and exact
		l.next = later(l.next, amount)
	case rest > 0:
		l.shift(rest)
	}
	if l.curve.Free() && l.curve.Interval != 0 {
		l.stored = max(0, float64(-rest*l.curve.Refill))
	}
}

// limit returns how much the bucket may hold: its capacity; but while a request for more is the
// first in the queue, as much as that needs, from when it asked or the one before it went.
func (l *Ledger) limit(amount, asked, now int64) float64 {
	span := l.curve.span(l.curve.Capacity)
	if !l.upfront || asked == charged || float64(amount) <= span {
		return span
	}
	return min(span+float64(l.bucket(now)-max(asked, l.book.last)), float64(amount))
}

// room returns how much more the bucket could hold now.
func (l *Ledger) room(now int64) float64 {
	owed := float64(l.next-l.origin(now)) + l.carry
	if !l.upfront || !l.waiting() {
		return max(0, l.curve.span(l.curve.Capacity-l.stored)+owed)
	}
	q := &l.book.queue
	head := q.head()
	return max(0, l.limit(q.amount(head), q.time(head), now)-l.saved()+owed)
}

// origin returns the time from which on the bucket fills: now, or the end of a pause.
func (l *Ledger) origin(now int64) int64 { return max(now, l.until) }

// bucket turns a time into the bucket's, whose clock stands still during pauses.
func (l *Ledger) bucket(now int64) int64 { return l.origin(now) - l.book.paused }

// shift moves next. A whole nanosecond that is missing then is carried, too, where moving next by
// it would make a promised time later.
func (l *Ledger) shift(by float64) {
	t, part := shift(l.next, by)
	l.carry += part
	if l.carry > 1-hair && t < l.next {
		t, l.carry = t+1, max(0, l.carry-1)
	}
	l.next = t
}

// shift moves a time, and returns the part of a nanosecond that is missing then.
func shift(t int64, by float64) (int64, float64) {
	n := math.Floor(by + hair)
	switch {
	case n < -1<<62:
		return t - 1<<62, 0
	case n < 0:
		return t + int64(n), by - n
	case n < 1<<62:
		return later(t, int64(n)), max(0, by-n)
	default: // also NaN
		return math.MaxInt64, 0
	}
}

// hair is how much rounding may add to a whole number of nanoseconds.
const hair = 1e-6

// Pause stops the bucket until a time: no request goes before, nothing is saved up, and all later
// promises move by as much. It reports false if that changes nothing.
func (l *Ledger) Pause(now, until int64) bool {
	l.advance(now)
	// At most 255 years, and no longer than what is owed can move, so that nothing is lost when the
	// pause is ended early.
	origin := l.origin(now)
	by := math.MaxInt64 - max(l.next, 0) - l.owed()
	if until = min(until, 7<<60); until <= origin || by <= 0 {
		return false
	}
	by = min(by, until-origin)
	l.move(by)
	l.until = origin + by
	return true
}

// Paused returns the end of the latest pause.
func (l *Ledger) Paused() int64 { return l.until }

// Resume ends a pause now, and reports whether there was one.
func (l *Ledger) Resume(now int64) bool {
	by := l.until - now
	if l.until <= now {
		return false
	}
	l.move(-by)
	l.until = now
	l.advance(now)
	return true
}

// move moves all that is to come.
func (l *Ledger) move(by int64) {
	if by > 0 {
		l.next = later(l.next, by)
	} else {
		l.next += by
	}
	if b := l.book; b != nil {
		b.paused += by
		b.changed(b.front)
	}
}

// changed notes that requests that wait may have other times now than were promised.
func (b *book) changed(now int64) {
	b.front, b.due = max(b.front, now), math.MinInt64
	if !b.queue.empty() && !b.queue.noted {
		b.queue.note(b.queue.size(), nothing)
	}
}
