package shared

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A machine is the state of one limiter whose promised times can't be moved, since other processes hold them: the
// script's arithmetic (machine.lua, which says what the fields are), step for step, for stores that run no scripts.
// Where the two agree to the last bit, one's state can be read by the other.
type machine struct {
	terms  *terms
	store  float64 // the capacity, or 0 if there is no limit
	bursty bool    // stored permits are free, so they can be had at any time

	anchor, of             float64 // when the state was written, and the capacity then
	stored, debt, deferred float64
	time, epoch, at        float64
	slot, born             float64
	peak, newer, fence     float64
	hold, held             float64
	runs                   []run
	rooms                  []room
}

// A run is a stretch of the queue that was given back and is still ahead.
type run struct{ low, high, begin, length, kept float64 }

// A room is what would still have fitted right before permits were taken at once.
type room struct{ time, fits float64 }

const (
	shortMagic, longMagic = "pac\x03", "pac\x04"
	shortSize, longSize   = 52, 118
	shortRooms, longRooms = 16, 12 // so that a key that is drained takes less than 400 bytes of Redis
	mostRuns              = 512
)

// A StateError says that the value that a store holds is not the state of a limiter.
type StateError struct{ Size int } // in bytes

func (e *StateError) Error() string {
	return fmt.Sprintf("shared: a value of %d bytes is not the state of a limiter", e.Size)
}

// decode reads a state: nil is a limiter that is new, and full.
func (m *machine) decode(b []byte, t *terms, now float64) error {
	*m = machine{terms: t, store: max(0, t.capacity), bursty: t.line.Base == 0 && t.curve.Interval > 0, of: t.capacity,
		anchor: now, time: now, epoch: now, born: now, slot: 1, runs: m.runs[:0], rooms: m.rooms[:0]}
	m.stored = m.store
	if b == nil {
		return nil
	}
	at := 4
	next := func(into ...*float64) {
		for _, f := range into {
			*f = math.Float64frombits(binary.LittleEndian.Uint64(b[at:]))
			at += 8
		}
	}
	runs := 0
	switch {
	case len(b) >= shortSize && string(b[:4]) == shortMagic:
		next(&m.anchor, &m.time, &m.of, &m.stored, &m.slot, &m.born)
		m.epoch = m.time
	case len(b) >= longSize && string(b[:4]) == longMagic:
		next(&m.anchor, &m.time, &m.of, &m.stored, &m.debt, &m.deferred, &m.peak, &m.newer, &m.fence, &m.hold, &m.held,
			&m.epoch, &m.slot, &m.born)
		runs = int(binary.LittleEndian.Uint16(b[at:]))
		at += 2
	default:
		return &StateError{len(b)}
	}
	if rest := len(b) - at - 40*runs; rest < 0 || rest%16 != 0 {
		return &StateError{len(b)}
	}
	for range runs {
		var r run
		next(&r.low, &r.high, &r.begin, &r.length, &r.kept)
		m.runs = append(m.runs, r)
	}
	for at < len(b) {
		var r room
		next(&r.time, &r.fits)
		m.rooms = append(m.rooms, r)
	}
	return nil
}

// encode returns the state as of now.
func (m *machine) encode(now float64) []byte {
	if m.debt == 0 {
		b := make([]byte, 0, shortSize+16*len(m.rooms))
		b = doubles(append(b, shortMagic...), now, m.time, m.terms.capacity, m.stored, m.slot, m.born)
		return m.encodeRooms(b)
	}
	m.squeeze(longRooms)
	b := make([]byte, 0, longSize+40*len(m.runs)+16*len(m.rooms))
	b = doubles(append(b, longMagic...), now, m.time, m.terms.capacity, m.stored, m.debt, m.deferred, m.peak, m.newer,
		m.fence, m.hold, m.held, m.epoch, m.slot, m.born)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.runs)))
	for _, r := range m.runs {
		b = doubles(b, r.low, r.high, r.begin, r.length, r.kept)
	}
	return m.encodeRooms(b)
}

func (m *machine) encodeRooms(b []byte) []byte {
	for _, r := range m.rooms {
		b = doubles(b, r.time, r.fits)
	}
	return b
}

// keep returns for how long the state has to be kept, in milliseconds: until all is paid and the store is full.
func (m *machine) keep() float64 {
	fill := 0.0
	if refill := m.terms.curve.Refill; refill > 0 {
		fill = (m.store - m.stored) / refill
	}
	ttl := min((m.debt+fill)/1e6+1001, 9e12)
	return ttl - math.Mod(ttl, 1)
}

// decide decides an order, and reports whether the state has changed.
func (m *machine) decide(o *order, now float64) (changed bool) {
	// A clock that was set back is written at once, or callers who are refused would wait until it is where it was.
	changed = now < m.anchor || o.touch || o.pause != 0 || len(o.refunds) > 0
	m.rescale()
	m.advance(max(0, now-m.anchor))
	for _, r := range o.refunds {
		m.giveBack(r)
	}
	m.pause(o.pause)
	o.decided, o.late = now, false
	o.state = state{time: m.time, slot: m.slot, stored: m.stored, debt: m.debt, deferred: min(m.spare(), longest)}
	o.waits = o.waits[:0]
	for _, w := range o.asked {
		wait, sold := m.sell(w.permits, w.limit)
		o.waits = append(o.waits, wait)
		changed = changed || sold
	}
	return changed
}

// rescale is for a caller that has another rate: stored permits scale with the store.
func (m *machine) rescale() {
	of, capacity := m.of, m.terms.capacity
	switch {
	case of == capacity:
	case of < 0 || capacity < 0:
		m.stored, m.deferred, m.held, m.rooms, m.runs = 0, 0, 0, m.rooms[:0], m.runs[:0]
		if m.terms.curve.Full {
			m.stored = m.store
		}
		m.slot, m.born = m.slot+1, m.time+1 // what was sold before has nothing to do with this store
	case of == 0:
		m.stored, m.deferred, m.held, m.rooms = 0, 0, 0, append(m.rooms[:0], room{m.time, 0}) // nothing fitted
	default:
		scale := capacity / of
		m.stored, m.deferred, m.held = min(m.stored*scale, 1.7e308), min(m.deferred*scale, 1.7e308), m.held*scale
		m.peak, m.newer = m.peak*scale, m.newer*scale
		for i := range m.rooms {
			m.rooms[i].fits *= scale
		}
		for i := range m.runs {
			m.runs[i].kept *= scale
		}
	}
}

// advance brings the state up to now.
func (m *machine) advance(passed float64) {
	m.time += passed
	m.at = (m.time - m.epoch) * 1000
	passed *= 1000
	for len(m.runs) > 0 && m.runs[0].begin < m.at { // runs whose time has come were idle
		r := &m.runs[0]
		stop, from := min(m.at, r.begin+r.length), max(r.begin, m.hold) // nothing is saved up in a pause
		idle, fits := 0.0, m.room()
		if m.bursty && stop > from {
			idle = float64((stop - from) * m.terms.curve.Refill)
		}
		over := r.begin+r.length <= m.at
		if over {
			idle += r.kept
			m.runs = slices.Delete(m.runs, 0, 1)
		} else {
			r.begin, r.length = m.at, r.begin+r.length-m.at
		}
		m.deferred += min(idle, fits)
		if !over {
			break
		}
	}
	if passed > 0 {
		if m.debt > 0 && m.bursty && m.terms.upfront { // somebody may have gone
			m.note(m.room())
		}
		if passed < m.debt {
			m.debt -= passed
		} else {
			idle := passed - m.debt
			if m.debt > 0 {
				m.paid()
			}
			m.stored = min(m.store, m.stored+float64(idle*m.terms.curve.Refill))
			m.debt, m.epoch, m.at, m.hold, m.fence = 0, m.time, 0, 0, 0
		}
	}
	if m.at >= m.hold {
		m.held = 0
	}
	if m.at >= m.fence { // of those before it nobody is left
		m.peak, m.newer, m.fence = m.newer, 0, m.at+m.debt
	}
}

// paid is called when nothing is owed any more.
func (m *machine) paid() {
	m.stored, m.deferred, m.debt = min(m.store, m.stored+m.deferred), 0, 0
	m.runs, m.peak, m.newer, m.fence = m.runs[:0], 0, 0, 0
	m.epoch, m.hold, m.at = m.time, max(0, m.hold-m.at), 0
}

// room is what still fits. Paid upfront, the store also holds what the others wait for.
func (m *machine) room() float64 {
	fits := m.store - m.stored - m.deferred
	if m.terms.upfront && m.debt > 0 {
		fits -= max(m.peak, m.newer)
	}
	return max(0, fits)
}

// spare returns the deferred permits that can be had at once: all, if they suffice for the largest promise that may
// not be paid for yet, and nobody pauses.
func (m *machine) spare() float64 {
	if m.bursty && m.at >= m.hold && (m.terms.upfront || m.deferred >= max(m.peak, m.newer)) {
		return m.deferred
	}
	return 0
}

// note remembers the room right before somebody goes.
func (m *machine) note(before float64) {
	n := len(m.rooms)
	for ; n > 0; n-- {
		if r := m.rooms[n-1]; r.time == m.time {
			before = min(before, r.fits)
		} else if r.fits < before {
			break
		}
	}
	m.rooms = append(m.rooms[:n], room{m.time, before})
	m.squeeze(shortRooms)
}

// squeeze leaves at most so many rooms, or a few less. Neighbours merge where that loses least: the later time, the
// lower room.
func (m *machine) squeeze(most int) {
	if len(m.rooms) <= most {
		return
	}
	for len(m.rooms) > most*5/6 {
		least, at := math.Inf(1), 0
		for i := range len(m.rooms) - 1 {
			if step := m.rooms[i+1].fits - m.rooms[i].fits; step < least {
				least, at = step, i
			}
		}
		m.rooms[at+1].fits = m.rooms[at].fits
		m.rooms = slices.Delete(m.rooms, at, at+1)
	}
}

// deposit takes back what was taken at a time: permits at once, and what idles in a stretch of the queue that has
// passed. It is worth what would still be there had it been so from then on. Times are from now.
func (m *machine) deposit(permits, taken, begin, stop, worth float64) {
	first := len(m.rooms)
	for first > 0 && (m.rooms[first-1].time-m.time)*1000 > taken {
		first--
	}
	for i := first; i < len(m.rooms); i++ {
		r := &m.rooms[i]
		idle := min(stop, (r.time-m.time)*1000)
		if idle > begin {
			permits, begin = permits+float64((idle-begin)*worth), idle
		}
		permits = min(permits, r.fits)
		r.fits -= permits
	}
	if stop > begin {
		permits += float64((stop - begin) * worth)
	}
	permits = min(permits, m.room())
	if m.debt > 0 {
		m.deferred += permits
	} else {
		m.stored += permits
	}
}

// free puts a stretch that is still ahead among the runs, and joins it with its neighbours.
func (m *machine) free(r run) {
	i := 0
	for i < len(m.runs) && m.runs[i].begin <= r.begin {
		i++
	}
	if i > 0 && m.runs[i-1].high == r.low {
		i--
		b := m.runs[i]
		r = run{b.low, r.high, b.begin, b.length + r.length, b.kept + r.kept}
		m.runs = slices.Delete(m.runs, i, i+1)
	}
	if i < len(m.runs) && m.runs[i].low == r.high {
		a := m.runs[i]
		r = run{r.low, a.high, r.begin, r.length + a.length, r.kept + a.kept}
		m.runs = slices.Delete(m.runs, i, i+1)
	}
	m.runs = slices.Insert(m.runs, i, r)
	if len(m.runs) > mostRuns { // the next: its time passes unused
		m.runs = slices.Delete(m.runs, 0, 1)
	}
}

// fall takes the runs at the end of the queue off it.
func (m *machine) fall() {
	for fell := true; fell; {
		kept := 0.0
		n := len(m.runs)
		if fell = n > 0 && m.runs[n-1].high == m.slot; fell {
			r := m.runs[n-1]
			m.debt, m.slot, m.runs, kept = m.debt-r.length, r.low, m.runs[:n-1], r.kept
		}
		if m.debt < 0.5 { // but for what was rounded
			m.paid()
		}
		if kept > 0 {
			m.deposit(kept, 0, 0, 0, 0)
		}
	}
}

// giveBack takes back a slot, or the end of one.
func (m *machine) giveBack(c comeback) {
	if c.sold < m.born { // before the key was lost
		return
	}
	since := (m.time - c.sold) * 1000
	begin, ready, kept, number := c.begin-since, c.ready-since, c.kept, c.number
	ahead := max(0, min(c.length, begin+c.length))
	waits := ready > 0 // then what it held was there since the sale
	if waits {
		ready = -since
		if m.bursty && (c.length == 0 || !m.terms.upfront) {
			m.held = max(0, m.held-kept)
		}
	}
	if m.terms.upfront && c.whole == 0 { // what is kept of it lies at its end: it can't fall
		number = -number
	}
	if ahead > 0 && number == m.slot { // the newest: as if it had never been
		m.debt, m.slot = m.debt-ahead, m.slot-c.whole
		m.fall()
		if m.terms.line.Base > 0 {
			m.stored = min(m.store, m.stored+float64((c.length-ahead)*m.terms.curve.Refill))
		}
	} else if ahead > 0 {
		back := 0.0
		if waits && m.bursty {
			back, kept = kept, 0
		}
		m.free(run{number - c.whole, number, m.at + max(0, begin), ahead, back})
	}
	if m.terms.line.Base > 0 {
		m.stored = min(m.store, m.stored+kept) // a stored permit is never cheaper than a fresh one
	} else {
		m.deposit(kept, ready, begin, begin+c.length-ahead, c.worth)
	}
}

// pause keeps everybody from being promised permits for so long from now, or ends that (resume), or makes the limiter
// a new one (reset): what was sold before does not come back.
func (m *machine) pause(d float64) {
	if d > 0 {
		m.hold = max(m.hold, m.at+d)
	} else if d == reset {
		*m = machine{terms: m.terms, store: m.store, bursty: m.bursty, of: m.of, stored: m.store, time: m.time, epoch: m.time,
			slot: m.slot + 1, born: m.time + 1, runs: m.runs[:0], rooms: m.rooms[:0]}
	} else if d == resume && m.held < 1e-6 { // no stored permits were promised for its end
		m.hold = 0
		m.fall()
	}
	if m.hold > m.at+m.debt { // until the pause ends nothing is promised: a stretch that nobody bought
		m.slot++
		m.free(run{m.slot - 1, m.slot, m.at + m.debt, m.hold - m.at - m.debt, 0})
		m.debt = m.hold - m.at
	}
}

// sell sells permits if they can be had within limit, and reports whether they were sold.
func (m *machine) sell(permits, limit float64) (wait float64, sold bool) {
	curve, upfront := m.terms.curve, m.terms.upfront
	taken, cost := curve.Price(m.stored, permits)
	wait = m.debt
	if upfront {
		wait += cost
	}
	wait = roundUp(min(wait, longest))
	switch {
	case wait > 0 && limit >= 0 && m.deferred > 0 && permits <= m.spare():
		m.note(m.room())
		m.deferred -= permits
		return 0, true
	case wait > limit:
		return -1 - wait, false
	}
	if m.bursty && m.store > 0 && (wait == 0 || taken > 0) { // it goes, or the store holds it
		m.note(m.room())
	}
	m.stored, m.debt = m.stored-taken, min(m.debt+cost, longest)
	if m.bursty && wait > 0 && (cost == 0 || !upfront) {
		m.held += taken
	}
	if cost > 0 {
		m.slot, m.newer = m.slot+1, max(m.newer, permits)
		if upfront {
			m.deferred = min(m.deferred, max(0, m.store-max(m.peak, m.newer)))
		}
	}
	return wait, true
}
