package smooth

import "math"

// A request takes an amount out of the bucket. Amounts are whole nanoseconds, which add up to the same sum in any
// order.

// Reserve promises permits (at least 1), and returns when they are ready. If that is after latest, it takes nothing,
// and ok is false.
func (l *Ledger) Reserve(now int64, permits int, latest int64) (slot Slot, ready int64, ok bool) {
	h := l.record()
	l.advance(now)
	taken, amount, early := l.price(float64(permits))
	if ready = max(now, l.promised(l.owed(), amount, math.MaxUint64)); ready > latest {
		return Slot{}, ready, false
	}
	slot = Slot{Permits: permits, price: h.price, stored: l.stored}
	slot.Number = l.sell(now, amount, 0, ready > now)
	l.stored, l.early = l.stored-taken, early
	if amount > huge || ready-now > huge {
		h.keep(slot.Number, amount)
	}
	return slot, ready, true
}

// huge is 36 years.
const huge = 1 << 60

func (h *history) keep(number uint64, amount int64) {
	if h.huge == nil {
		h.huge = map[uint64]int64{}
	}
	h.huge[number] = amount
}

func (l *Ledger) Take(now int64, permits int) bool {
	if h := l.history; h != nil && (l.waits || now < h.until) {
		if l.advance(now); l.waits || now < h.until {
			return false
		}
	}
	l.fill(now)
	taken, amount, early := l.price(float64(permits))
	room := l.empty
	if l.upfront {
		room += amount - l.curve.Ahead() // price keeps it from overflowing
	}
	if now < room {
		return false
	}
	if h := l.history; h != nil {
		l.low = min(l.low, max(0, l.span-(now-l.empty)))
		if l.stored > 0 {
			h.room = min(h.room, l.room())
		}
	}
	l.empty += amount
	l.stored, l.early = l.stored-taken, early
	return true
}

// Charge takes permits (at least 1) that were used already, behind all that wait.
func (l *Ledger) Charge(now int64, permits int) {
	l.advance(now)
	taken, amount, early := l.price(float64(permits))
	if l.history == nil {
		l.empty += amount
	} else {
		l.sell(now, amount, 1, l.waits)
	}
	l.stored, l.early = l.stored-taken, early
}

// Drain takes what a request that pays upfront need not wait for, where stored permits have a price.
func (l *Ledger) Drain(now int64) {
	if l.advance(now); l.upfront {
		l.empty = max(l.empty, addSaturating(l.origin(now), l.curve.Ahead()))
	}
}

// price returns permits' cost now: stored permits, an amount, and the ledger's next early.
func (l *Ledger) price(permits float64) (taken float64, amount int64, early float64) {
	cost := permits * l.curve.Interval
	if l.stored > 0 {
		taken, cost = l.curve.Price(l.stored, permits)
	}
	cost -= l.early
	amount = max(0, roundUp(cost))
	if most := math.MaxInt64 - max(0, l.empty) - l.owed(); amount >= most {
		return taken, most, 0 // time has ended
	}
	return taken, amount, float64(amount) - cost
}

func (l *Ledger) sell(now, amount int64, charge uint64, wait bool) (number uint64) {
	h := l.history
	if l.noteStore(); !l.waits {
		l.note(now)
	}
	h.number = (h.number+2)&^1 | charge
	if wait {
		h.queue.push(entry{h.number, amount})
		l.waits = true
	} else {
		l.empty += amount
	}
	return h.number
}

func (l *Ledger) advance(now int64) {
	if l.waits {
		h := l.history
		for !h.queue.empty() {
			at := max(l.promise(0, h.queue.first().amount, h.queue.first().number), h.moved)
			if at > now {
				return
			}
			l.note(at)
			l.empty += h.queue.pop(at)
			h.moved = at
		}
		l.waits = false
	}
	l.fill(l.origin(now))
}

func (l *Ledger) fill(now int64) {
	if l.stored > 0 && l.span > 0 && now >= l.empty {
		l.pour()
	}
	full := addSaturating(now, -l.span)
	if l.empty >= full {
		return
	}
	if c := l.curve; l.span > 0 {
		l.early = float64(c.Capacity*c.Interval) - float64(l.span) // so that it holds exactly what it can
	} else {
		l.store(float64((float64(addSaturating(full, -l.empty)) + l.early) * c.Refill))
		l.early = 0
	}
	l.empty = full
}

func (l *Ledger) store(permits float64) {
	stored := l.stored + permits
	if stored > l.curve.Capacity {
		stored = l.curve.Capacity
	}
	if stored > l.stored {
		l.stored = stored
	}
}

func (l *Ledger) pour() {
	time := float64(l.stored*l.curve.Interval) + l.early
	amount := roundDown(time)
	l.empty, l.stored, l.early = addSaturating(l.empty, -amount), 0, time-float64(amount)
}
