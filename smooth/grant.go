package smooth

import "math"

// The bucket holds time. Before next it is in debt; from then on its level is the time since, as long
// as requests wait, and otherwise the stored permits. The first in the queue is granted when the bucket
// is not in debt or, paid upfront, when it holds the amount of the request.

// An asking is what a request that has to wait takes.
type asking struct {
	taken  float64 // permits that leave the store at once
	amount int64   // nanoseconds that it adds to the queue
	next   int64   // what the ledger's next is then,
	early  float64 // and early
}

// ask prices a request that has to wait.
func (l *Ledger) ask(now int64, permits float64) (a asking) {
	var cost float64
	a.next, a.early = l.next, l.early
	if !l.waits && l.next <= l.origin(now) { // what is stored free of charge is time, from now on
		if time := l.curve.toTime(l.stored); time > 0 {
			a.next, a.early = move(l.next, l.early, -time)
			a.taken = l.stored
		}
	}
	taken, cost := l.curve.ask(l.stored, permits)
	a.taken += taken
	a.amount, a.early = move(0, a.early, cost)
	a.amount = max(0, min(a.amount, math.MaxInt64-max(a.next, 0)-l.owed()))
	return a
}

// wait puts a request into the queue, and returns its number.
func (l *Ledger) wait(now int64, a asking) uint64 {
	h := l.record()
	l.flush()
	l.noteFull(l.stored)
	if !l.waits {
		h.headSince, h.nextGrant, h.lastGrant, l.waits = now, now, l.bucketTime(now), true
	}
	l.number++
	h.queue.push(l.number, a.amount)
	if l.upfront {
		h.queue.note(h.queue.size(), l.bucketTime(now))
	}
	l.stored, l.next, l.early = l.stored-a.taken, a.next, a.early
	return l.number
}

// grant grants a request at once, if it may, and returns what was stored before it.
func (l *Ledger) grant(now int64, wanted float64) (stored float64, ok bool) {
	if l.waits {
		l.advance(now)
	}
	if now < l.next || l.waits {
		return 0, false
	}
	stored, early := l.refilled(now)
	taken, amount := wanted, int64(0)
	if c := l.curve; wanted > stored || c.Interval == 0 || c.Line != nil || c.Cost != nil {
		var cost float64
		if taken, cost = c.Price(stored, wanted); cost > 0 {
			amount, early = move(0, early, cost)
		}
		if amount > 0 && l.upfront {
			return 0, false
		}
		if c.Interval < 1 && early > epsilon && amount > 0 { // permits of one nanosecond go within it
			amount, early = amount-1, early-1
		}
	}
	if l.history != nil {
		if h := l.curve.toTime(l.curve.Capacity - stored); h < l.low {
			l.low = h
		}
		l.noteFull(stored)
	}
	l.stored, l.next, l.early = stored-taken, addSaturating(now, max(0, amount)), early
	return stored, true
}

// noteFull is called before permits are taken from a store that holds stored of them.
func (l *Ledger) noteFull(stored float64) {
	if stored >= l.curve.Capacity {
		l.history.full = l.number
	}
}

// refilled returns what is stored and early now, at or after next.
func (l *Ledger) refilled(now int64) (stored, early float64) {
	if now == l.next {
		return l.stored, l.early
	}
	stored = l.stored + float64((float64(now-l.next)+l.early)*l.curve.Refill)
	if stored > l.curve.Capacity {
		stored = max(l.stored, l.curve.Capacity)
	}
	return stored, 0
}

// advance grants all requests whose time has come. If none waits any more, idle time flows into the
// store. While there is debt (now before next) nothing does; a stale reading of the clock
// looks like debt, so it mints nothing.
func (l *Ledger) advance(now int64) {
	if l.waits {
		if now < l.history.nextGrant {
			return
		}
		l.grantWaiting(now)
	} else if now > l.next {
		l.refill(now)
	}
}

// refill lets idle time flow into the store.
func (l *Ledger) refill(now int64) {
	if now > l.next {
		l.stored, l.early = l.refilled(now)
		l.next = now
	}
}

// grantWaiting grants the waiting requests whose time has come, each at its time.
func (l *Ledger) grantWaiting(now int64) {
	h := l.history
	for l.skip() {
		i := h.queue.granted + 1
		amount, asked, at := h.queue.amount(i), h.queue.time(i), h.headSince
		if asked != charged {
			if at = max(at, l.promise(l.next, 0, amount)); at > now {
				h.nextGrant = at
				return
			}
		}
		if amount > 0 {
			h.headrooms.push(h.queue.number(i)-1, l.headroom(at)/h.changes.scale)
		}
		h.lastGrant, h.headSince = l.bucketTime(at), at
		l.next = addSaturating(l.next, h.queue.pop(at))
	}
	l.waits = false
	l.refill(l.origin(now))
}

// skip passes over requests that were given up, and reports whether any other waits.
func (l *Ledger) skip() bool {
	q := &l.history.queue
	for !q.empty() && q.time(q.granted+1) == left {
		l.next = addSaturating(l.next, q.pop(left))
	}
	return !q.empty()
}

// promise returns when a request is granted, from what is to be paid before it and its own amount.
func (l *Ledger) promise(next, before, own int64) int64 {
	if l.upfront {
		before = addSaturating(before, own)
	}
	at := addSaturating(next, before)
	if l.history != nil {
		at = max(at, l.history.until)
	}
	return at
}

// owed returns what the waiting requests have to pay together.
func (l *Ledger) owed() int64 {
	if !l.waits {
		return 0
	}
	return l.history.queue.owed
}

// level returns what the bucket holds, in nanoseconds; in debt it is negative.
func (l *Ledger) level(now int64) float64 {
	time := float64(l.origin(now) - l.next)
	if l.waits { // then early is the last promise's
		return time
	}
	if time += l.early; time >= 0 {
		time += l.curve.toTime(l.stored)
	}
	return time
}

// limit returns how much the bucket may hold: its capacity; but paid upfront, while a request for more is
// the head of the queue, as much as that needs, from when it asked or became the head.
func (l *Ledger) limit(now int64) float64 {
	capacity := l.curve.toTime(l.curve.Capacity)
	if !l.upfront || !l.waits {
		return capacity
	}
	h := l.history
	amount, asked := float64(h.queue.amount(h.queue.granted+1)), h.queue.time(h.queue.granted+1)
	if asked == charged || amount <= capacity {
		return capacity
	}
	return min(capacity+float64(l.bucketTime(now)-max(asked, h.lastGrant)), amount)
}

// headroom returns how much more the bucket could hold now.
func (l *Ledger) headroom(now int64) float64 { return max(0, l.limit(now)-l.level(now)) }

// flush adds the headroom of grants since the newest request.
func (l *Ledger) flush() {
	if l.low < math.Inf(1) {
		l.history.headrooms.push(l.number, l.low/l.history.changes.scale)
		l.low = math.Inf(1)
	}
}
