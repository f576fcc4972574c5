package smooth

import "math"

// A Ledger is the state of one limiter. Make one with New; its methods must not
// run at the same time, and the times they are given must not run back.
type Ledger struct {
	curve   *Curve
	stored  float64 // permits saved up, as of the moment next if that has passed
	next    int64   // the end of the queue, "next free": where an unsold request would go
	carry   float64 // of a nanosecond, [0, 2): what next is too early by
	inflow  float64 // all permits that came into the store or aside so far, fitting or not
	back    *back   // what has been given back; nil until something is
	slots   uint64  // the number of the newest slot
	upfront bool
}

// A Slot is the stretch of time that a request bought. It begins when it is ready,
// or ends then if the limiter is paid upfront.
type Slot struct {
	Ready   int64 // when its permits may be used
	Permits int

	length int64
	stored float64 // held by the store right before it: that says what it took from there
	room   float64 // Ledger.inflow at which the store may be full again, and spills what comes back
	curve  *Curve  // that it was sold at
	number uint64  // in the order of sale
}

// An era ends when a time without limit begins or ends: what was sold before has
// nothing to do with the store after it. The upper bits of a slot's number tell
// its era, which has so many.
const eraSlots = 1 << 40

// New returns the ledger of a limiter that is free from now on and holds the given
// number of stored permits (no more than fit). With upfront a request waits for
// its own cost, as in a classic token bucket; without, the next one does.
func New(curve *Curve, now int64, stored float64, upfront bool) *Ledger {
	l := &Ledger{curve: curve, stored: min(stored, curve.Capacity), next: now, upfront: upfront}
	if curve.unlimited() {
		l.stored = curve.unlimitedStore()
	}
	return l
}

// Reserve sells permits (at least 1) and returns the slot that they bought: the
// first stretch for sale that is long enough, or else one at the end of the queue.
// A slot that would be ready after latest is not sold: ok is false, nothing has
// changed, and the slot tells only when it would have been ready.
func (l *Ledger) Reserve(now int64, permits int, latest int64) (slot Slot, ok bool) {
	slot.stored, slot.Ready, slot.length, ok = l.sell(now, float64(permits), latest)
	if !ok {
		return Slot{Ready: slot.Ready}, false
	}
	slot.Permits, slot.number, slot.curve = permits, l.slots, l.curve
	slot.room = l.inflow + l.vacant()
	return slot, true
}

// Take sells permits (at least 1) that are ready now, or does nothing and returns
// false. It is Reserve without the slot.
func (l *Ledger) Take(now int64, permits int) bool {
	if now < l.next && (l.back == nil || !l.back.sellsAt(now)) {
		return false // there is a queue
	}
	_, _, _, ok := l.sell(now, float64(permits), now)
	return ok
}

// Charge sells permits that have been used already: whoever comes next waits.
func (l *Ledger) Charge(now int64, permits int) {
	l.sell(now, float64(permits), math.MaxInt64)
}

// sell finds and takes a stretch of time for the permits, unless they would be
// ready only after latest. It returns what the store held before, when the permits
// are ready, and the length of the stretch.
func (l *Ledger) sell(now int64, permits float64, latest int64) (before float64, ready, length int64, ok bool) {
	if now > l.next || l.back != nil {
		l.advance(now)
	}
	before = l.stored
	taken, carry := permits, l.carry
	if c := l.curve; !c.Free() || permits > before || c.unlimited() { // else they are stored, and free
		var cost float64
		taken, cost = c.price(before, permits)
		length, carry = whole(cost + carry)
	}

	begin, offer := l.next, -1
	if l.back != nil {
		var at, room int64
		if offer, at, room = l.back.find(now, length); offer >= 0 {
			begin = at
			if length > room {
				length--
				carry++
			}
		}
	}
	end := later(begin, length)
	ready = begin
	if l.upfront {
		ready = end
	}
	if ready > latest {
		return before, ready, length, false
	}
	l.stored, l.carry = before-taken, carry
	l.slots++
	if offer >= 0 {
		l.back.sell(offer, end)
	} else {
		l.next = end
	}
	return before, ready, end - begin, true
}

// advance brings the ledger up to now. While there is debt (now before next)
// nothing flows into the store; a stale reading of the clock looks like debt, so
// it mints nothing.
func (l *Ledger) advance(now int64) {
	if l.back != nil {
		l.passUnsold(now)
	}
	if now <= l.next {
		return
	}
	idle := float64(now-l.next) - l.carry
	l.next, l.carry = now, 0
	if idle < 0 { // the carry may be more than the nanosecond that has passed
		l.carry = -idle
		return
	}
	flow := float64(idle * l.curve.Refill)
	l.inflow += flow
	l.stored += flow
	if l.stored > l.curve.Capacity {
		l.stored = l.curve.Capacity
	}
}

// SetRate changes the rate from now on. Debt keeps its time, and stored permits
// scale with the capacity.
func (l *Ledger) SetRate(now int64, permitsPerSecond float64) {
	if permitsPerSecond == l.curve.Rate {
		return
	}
	l.advance(now)
	old, curve := l.curve, l.curve.AtRate(permitsPerSecond)
	l.curve = curve
	if curve.unlimited() || old.unlimited() {
		l.stored, l.inflow = curve.unlimitedStore(), 0
		l.slots = (l.slots/eraSlots + 1) * eraSlots
		l.givenBack().newEra(now)
		return
	}
	l.stored = rescale(l.stored, old, curve)
	l.inflow = rescale(l.inflow, old, curve)
	l.givenBack().rateChanged(now, old, curve)
}

// rescale turns permits of the store of one curve into permits of another's.
func rescale(permits float64, from, to *Curve) float64 {
	if from == to || from.Capacity == to.Capacity {
		return permits
	}
	if from.Capacity == 0 {
		return 0
	}
	// The quotient first: it is small where the product could overflow.
	return min(permits/from.Capacity*to.Capacity, math.MaxFloat64)
}

// Rate returns the number of fresh permits per second.
func (l *Ledger) Rate() float64 { return l.curve.Rate }

// Stored returns the number of permits that are stored now. It changes nothing.
func (l *Ledger) Stored(now int64) float64 {
	if now < l.next {
		return l.stored
	}
	stored := l.stored
	if l.back != nil {
		earned, _ := l.back.unsold(now, l.curve.Refill)
		stored = min(stored+l.back.aside+earned, l.curve.Capacity)
	}
	if now > l.next {
		stored += max(0, float64((float64(now-l.next)-l.carry)*l.curve.Refill))
	}
	return min(stored, l.curve.Capacity)
}

// NextFree returns when a request for one permit, made now, would be ready. It
// changes nothing.
func (l *Ledger) NextFree(now int64) int64 {
	_, cost := l.curve.price(l.Stored(now), 1)
	carry := l.carry
	if now > l.next {
		carry = 0
	}
	length, _ := whole(cost + carry)
	begin := max(now, l.next)
	if l.back != nil {
		if offer, at, room := l.back.find(now, length); offer >= 0 {
			begin, length = at, min(length, room)
		}
	}
	if l.upfront {
		return later(begin, length)
	}
	return begin
}
