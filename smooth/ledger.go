package smooth

import "math"

// A Ledger is the state of one limiter. Make one with New; its methods must not
// run at the same time, and the times they are given must not run back.
type Ledger struct {
	curve   *Curve
	stored  float64  // permits, as of next if that has passed
	next    int64    // when the bucket is out of debt; while requests wait for free permits, when it was empty
	early   float64  // the part of a nanosecond by which next, or the last promise, was rounded up
	number  uint64   // of the newest request
	low     float64  // the smallest headroom of grants that headrooms don't have yet
	history *history // nil until a request has to wait, or may be refunded
	upfront bool
	waits   bool // a request waits
}

// history records individual requests: those waiting, and what is needed to value refunds of those
// already granted. Guava's two numbers are in Ledger.
type history struct {
	queue     queue // the requests that wait
	headrooms headrooms
	changes   changes
	forfeited uint64 // refunds of requests numbered up to this are worth nothing
	full      uint64 // the newest request when the store was last full, as far as permits were taken since
	nextGrant int64  // no request is granted before
	headSince int64  // when the current head became head, or was rescheduled; it is not granted before
	lastGrant int64  // when the last waiting request was granted, on the bucket's clock
	until     int64  // the end of the latest pause
	paused    int64  // by how much the bucket's clock is behind
}

// A Slot is the place of a request in the order of all. Its time may become earlier: see
// [Ledger.Ready].
type Slot struct {
	Number  uint64
	Permits int

	curve  *Curve  // that it was sold at
	stored float64 // permits stored right before it
	scale  float64 // of nanoseconds, then
}

// New returns the ledger of a limiter that is free from now on and holds the given
// number of stored permits (no more than fit). With upfront a request waits for
// its own cost, as in a classic token bucket; without, the next one does.
func New(curve *Curve, now int64, stored float64, upfront bool) *Ledger {
	l := &Ledger{curve: curve, stored: min(stored, curve.Capacity), next: now, low: math.Inf(1), upfront: upfront}
	if curve.unlimited() {
		l.stored = curve.unlimitedStore()
	}
	return l
}

// record returns the history, and begins it.
func (l *Ledger) record() *history {
	if l.history == nil {
		l.history = &history{changes: changes{scale: 1}, until: math.MinInt64}
	}
	return l.history
}

// Reserve promises permits (at least 1), and says when they are ready. If that is after latest
// they are not promised: ok is false, and nothing has changed.
func (l *Ledger) Reserve(now int64, permits int, latest int64) (slot Slot, ready int64, ok bool) {
	h := l.record()
	slot = Slot{Permits: permits, curve: l.curve, scale: h.changes.scale}
	if !l.waits || now >= h.nextGrant {
		if now <= latest {
			if slot.stored, ok = l.grant(now, float64(permits)); ok {
				l.flush()
				l.number++
				slot.Number = l.number
				return slot, now, true
			}
		}
		l.advance(now)
	}
	slot.stored = l.stored
	a := l.ask(now, float64(permits))
	if ready = l.promise(a.next, l.owed(), a.amount); ready > latest {
		return Slot{}, ready, false
	}
	slot.Number = l.wait(now, a)
	return slot, ready, true
}

// Take takes permits (at least 1) that are ready now, or does nothing and returns
// false. It is Reserve without the slot.
func (l *Ledger) Take(now int64, permits int) bool {
	_, ok := l.grant(now, float64(permits))
	return ok
}

// Charge takes permits (at least 1) that have been used already, behind all that wait.
func (l *Ledger) Charge(now int64, permits int) {
	l.advance(now)
	if l.waits {
		l.wait(now, l.ask(now, float64(permits)))
		q := &l.history.queue
		q.note(q.size(), charged)
		return
	}
	taken, cost := l.curve.Price(l.stored, float64(permits))
	if l.history != nil {
		l.low = min(l.low, l.headroom(now))
		l.flush()
		l.noteFull(l.stored)
		l.number++
	}
	l.stored -= taken
	l.next, l.early = move(l.next, l.early, cost)
}

// Ready returns when the permits of a slot may be used, by what is known now. For a granted
// request it returns when it was granted, if its time had changed since it asked and that is still
// remembered; otherwise known is false.
func (l *Ledger) Ready(now int64, number uint64) (ready int64, known bool) {
	l.advance(now)
	if l.history == nil {
		return 0, false
	}
	q := &l.history.queue
	i := q.index(number)
	if i > q.granted {
		return l.promise(l.next, q.before(i), q.amount(i)), true
	}
	if i > 0 {
		ready = q.time(i)
		known = ready > charged
	}
	return ready, known
}

// Waits reports whether the request of that number waits.
func (l *Ledger) Waits(now int64, number uint64) bool {
	l.advance(now)
	return l.waits && l.history.queue.index(number) > l.history.queue.granted
}

// Rate returns the number of fresh permits per second.
func (l *Ledger) Rate() float64 { return l.curve.Rate }

// Stored returns the number of permits that are stored now and that no request waits for.
func (l *Ledger) Stored(now int64) float64 {
	if l.advance(now); l.waits && l.curve.Free() && !l.curve.unlimited() {
		return min(max(0, float64((l.level(now)-float64(l.owed()))*l.curve.Refill)), l.curve.Capacity)
	}
	return min(l.stored, l.curve.Capacity)
}

// Level returns the number of permits that are stored now. While anything is owed it is negative: minus
// the fresh permits that have to come before the bucket is not in debt, those included that
// requests wait for.
func (l *Ledger) Level(now int64) float64 {
	l.advance(now)
	time := float64(l.origin(now)-l.next-l.owed()) + l.early
	if l.curve.unlimited() || time >= 0 && !(l.waits && l.curve.Free()) {
		return min(l.stored, l.curve.Capacity)
	}
	return min(time/l.curve.Interval, l.curve.Capacity)
}
