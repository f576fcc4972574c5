package smooth

import "math"

// A Ledger is the state of one limiter. Make one with New; its methods must not
// run at the same time, and the times they are given must not run back.
type Ledger struct {
	curve   *Curve
	stored  float64 // permits saved up, as of the moment next if that has passed
	next    int64   // when all that has gone is paid for
	carry   float64 // what next is too early by, about a nanosecond at most
	until   int64   // the end of the latest pause
	number  uint64  // of the newest request
	upfront bool
	book    *book // nil until a request has to wait, or may give something back
}

// A book is what is remembered of requests, beside the two numbers of Guava's model.
type book struct {
	queue  queue  // the requests that wait
	rooms  rooms  // what must be known of those that have gone
	lost   uint64 // of requests up to this number nothing comes back
	due    int64  // no request goes before this time
	front  int64  // the first of the queue goes no earlier: then it became the first, or its time changed
	last   int64  // when the last request went, on the bucket's clock
	paused int64  // how far that clock is behind
}

// A Slot is the place of a request in the order of all. Its time may become earlier: see
// [Ledger.Ready].
type Slot struct {
	Number  uint64
	Permits int

	curve  *Curve  // that it was sold at
	stored float64 // permits stored right before it
}

// New returns the ledger of a limiter that is free from now on and holds the given
// number of stored permits (no more than fit). With upfront a request waits for
// its own cost, as in a classic token bucket; without, the next one does.
func New(curve *Curve, now int64, stored float64, upfront bool) *Ledger {
	l := &Ledger{curve: curve, stored: min(stored, curve.Capacity), next: now, until: math.MinInt64, upfront: upfront}
	if curve.unlimited() {
		l.stored = curve.unlimitedStore()
	}
	return l
}

// Reserve promises permits (at least 1), and says when they are ready. If that is after latest
// they are not promised: ok is false, and nothing has changed.
func (l *Ledger) Reserve(now int64, permits int, latest int64) (slot Slot, ready int64, ok bool) {
	if l.book == nil {
		l.book = &book{last: math.MinInt64}
	}
	wanted := float64(permits)
	if b := l.book; b.queue.empty() || now >= b.due {
		if now <= latest {
			if stored, ok := l.grant(now, wanted); ok {
				return Slot{Number: l.number, Permits: permits, curve: l.curve, stored: stored}, now, true
			}
		}
		l.advance(now)
	}
	taken, amount, carry := l.amount(wanted)
	if ready = l.promise(l.book.queue.owed, amount); ready > latest {
		return Slot{}, ready, false
	}
	slot = Slot{Number: l.number + 1, Permits: permits, curve: l.curve, stored: l.stored}
	l.wait(now, taken, amount, carry)
	return slot, ready, true
}

// Take takes permits (at least 1) that are ready now, or does nothing and returns
// false. It is Reserve without the slot.
func (l *Ledger) Take(now int64, permits int) bool {
	_, ok := l.grant(now, float64(permits))
	return ok
}

// grant lets a request go at once, if it may, and returns what was stored before it.
func (l *Ledger) grant(now int64, wanted float64) (before float64, ok bool) {
	if l.waiting() {
		l.advance(now)
	}
	if now < l.next || l.waiting() {
		return 0, false
	}
	stored, carry := l.flowed(now)
	taken, length := wanted, int64(0)
	switch c := l.curve; {
	case wanted > stored || c.Interval == 0 || c.Line == nil && c.Cost != nil:
		taken, length, carry = l.price(stored, wanted, carry)
	case c.Line != nil:
		length, carry = whole(c.Line.Cost(stored, wanted) + carry)
	}
	if length > 0 && l.upfront {
		return 0, false
	}
	if b := l.book; b != nil {
		l.number++
		b.rooms.push(l.number, l.curve.span(l.curve.Capacity-stored))
		if l.upfront {
			b.last = l.bucket(now)
		}
	}
	l.stored, l.next, l.carry = stored-taken, later(now, length), carry
	return stored, true
}

// Charge takes permits (at least 1) that have been used already, behind all that wait.
func (l *Ledger) Charge(now int64, permits int) {
	l.advance(now)
	if l.waiting() {
		taken, amount, carry := l.amount(float64(permits))
		l.wait(now, taken, amount, carry)
		l.book.queue.note(l.book.queue.size(), charged)
		return
	}
	taken, length, carry := l.price(l.stored, float64(permits), l.carry)
	if l.book != nil {
		l.number++
		l.book.rooms.push(l.number, l.room(now))
		l.book.last = l.bucket(now)
	}
	l.stored, l.next, l.carry = l.stored-taken, later(l.next, length), carry
}

// price returns what permits take out of the store, and how long the rest takes.
func (l *Ledger) price(stored, wanted, carried float64) (taken float64, length int64, carry float64) {
	taken, cost := l.curve.Price(stored, wanted)
	length, carry = whole(cost + carried)
	return taken, length, carry
}

// amount returns what a request adds to the queue, in nanoseconds, and the permits that leave the
// store at once. Where stored permits are free they stay until the request goes, and all is
// counted in time.
func (l *Ledger) amount(permits float64) (taken float64, amount int64, carry float64) {
	taken, cost := l.curve.sold(l.stored, permits)
	amount, carry = whole(cost + l.carry)
	return taken, max(0, min(amount, math.MaxInt64-max(l.next, 0)-l.owed())), carry
}

// wait puts a request into the queue.
func (l *Ledger) wait(now int64, taken float64, amount int64, carry float64) {
	b := l.book
	if b.queue.empty() {
		b.front, b.due = now, now
	}
	l.number++
	b.queue.push(l.number, amount)
	if l.upfront {
		b.queue.note(b.queue.size(), l.bucket(now))
	}
	l.stored -= taken
	l.carry = carry
}

// waiting reports whether any request waits; owed returns what those have to pay together.
func (l *Ledger) waiting() bool { return l.book != nil && !l.book.queue.empty() }

func (l *Ledger) owed() int64 {
	if l.book == nil {
		return 0
	}
	return l.book.queue.owed
}

// advance lets all requests go whose time has come. If none is left, idle time flows into the
// store. While there is debt (now before next) nothing does; a stale reading of the clock
// looks like debt, so it mints nothing.
func (l *Ledger) advance(now int64) {
	if l.waiting() {
		if now < l.book.due {
			return
		}
		if l.letGo(now); l.waiting() {
			return
		}
	}
	if now > l.next {
		l.flow(now)
	}
}

// flow lets idle time flow into the store.
func (l *Ledger) flow(now int64) {
	l.stored, l.carry = l.flowed(now)
	l.next = now
}

// flowed returns what is stored and carried now, at or after next.
func (l *Ledger) flowed(now int64) (stored, carry float64) {
	idle := float64(now-l.next) - l.carry
	if idle < 0 { // the carry may be more than the nanosecond that has passed
		return l.stored, -idle
	}
	stored = l.stored + float64(idle*l.curve.Refill)
	if stored > l.curve.Capacity {
		stored = l.curve.Capacity
	}
	return stored, 0
}

// Ready returns when the permits of a slot may be used, by what is known now. For a request that
// has gone it returns when it went, if its time had changed since it asked and that is still
// remembered; otherwise known is false.
func (l *Ledger) Ready(now int64, number uint64) (ready int64, known bool) {
	l.advance(now)
	if l.book == nil {
		return 0, false
	}
	q := &l.book.queue
	i := q.index(number)
	if i > q.gone {
		return l.promise(q.before(i), q.amount(i)), true
	}
	if i > 0 {
		ready = q.time(i)
		known = ready > charged
	}
	return ready, known
}

// Rate returns the number of fresh permits per second.
func (l *Ledger) Rate() float64 { return l.curve.Rate }

// Stored returns the number of permits that are stored now and that no request waits for.
func (l *Ledger) Stored(now int64) float64 {
	l.advance(now)
	if !l.waiting() || l.curve.unlimited() || !l.curve.Free() {
		return min(l.stored, l.curve.Capacity)
	}
	spare := l.saved() + float64(max(0, l.origin(now)-l.next)) - float64(l.book.queue.owed)
	return min(max(0, float64(spare*l.curve.Refill)), l.curve.Capacity)
}

// Level returns the number of permits that are stored now. While anything is owed it is negative: minus
// the fresh permits that have to come before the bucket is not in debt, those included that
// requests wait for.
func (l *Ledger) Level(now int64) float64 {
	l.advance(now)
	origin := l.origin(now)
	if l.curve.unlimited() || !l.waiting() && l.next <= origin {
		return min(l.stored, l.curve.Capacity)
	}
	time := l.saved() - float64(l.owed()) - float64(l.next-origin) - l.carry
	if time >= 0 && !l.curve.Free() {
		return min(l.stored, l.curve.Capacity)
	}
	return min(time/l.curve.Interval, l.curve.Capacity)
}

// NextFree returns when a request for one permit, made now, would be ready.
func (l *Ledger) NextFree(now int64) int64 { return l.Look(now, 1) }

// Look returns when a request, made now, would be ready. It takes nothing.
func (l *Ledger) Look(now int64, permits int) int64 {
	l.advance(now)
	_, amount, _ := l.amount(float64(permits))
	if ready := l.promise(l.owed(), amount); ready > now || l.waiting() {
		return ready
	}
	return now
}
