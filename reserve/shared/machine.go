package shared

import "slices"

// A machine is the state of one limiter whose promised times can't be moved, since other processes hold them. It is the
// script's arithmetic step for step, for stores that run no scripts. machine.lua says what the fields are. Where the
// two agree to the last bit, one's state can be read by the other.
type machine struct {
	terms  *terms
	store  float64 // the capacity, or 0 if there is no limit
	bursty bool    // stored permits are free, so they may be used at any time

	anchor, of             float64 // when the state was written, and the capacity then
	stored, debt, deferred float64
	time, epoch, at        float64
	slot, born             float64
	peak, newer, fence     float64
	hold, held             float64
	runs                   []run
	headrooms              []headroom
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
		m.stored, m.deferred, m.held, m.headrooms, m.runs = 0, 0, 0, m.headrooms[:0], m.runs[:0]
		if m.terms.curve.Full {
			m.stored = m.store
		}
		m.slot, m.born = m.slot+1, m.time+1 // what was sold before has nothing to do with this store
	case of == 0:
		m.stored, m.deferred, m.held, m.headrooms = 0, 0, 0, append(m.headrooms[:0], headroom{m.time, 0}) // nothing fitted
	default:
		scale := capacity / of
		m.stored, m.deferred, m.held = min(m.stored*scale, 1.7e308), min(m.deferred*scale, 1.7e308), m.held*scale
		m.peak, m.newer = m.peak*scale, m.newer*scale
		for i := range m.headrooms {
			m.headrooms[i].fits *= scale
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
		idle, fits := 0.0, m.headroom()
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
		if m.debt > 0 && m.bursty && m.terms.upfront { // a request may have been granted
			m.note(m.headroom())
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
	if m.at >= m.fence { // no promise of before it is left
		m.peak, m.newer, m.fence = m.newer, 0, m.at+m.debt
	}
}

// paid is called when nothing is owed any more.
func (m *machine) paid() {
	m.stored, m.deferred, m.debt = min(m.store, m.stored+m.deferred), 0, 0
	m.runs, m.peak, m.newer, m.fence = m.runs[:0], 0, 0, 0
	m.epoch, m.hold, m.at = m.time, max(0, m.hold-m.at), 0
}

// pause lets no request be promised permits for so long from now, or ends that (resume). Or it makes the limiter a new
// one (reset): what was sold before does not come back.
func (m *machine) pause(d float64) {
	if d > 0 {
		m.hold = max(m.hold, m.at+d)
	} else if d == reset {
		*m = machine{
			terms: m.terms, store: m.store, bursty: m.bursty, of: m.of, stored: m.store, time: m.time, epoch: m.time,
			slot: m.slot + 1, born: m.time + 1, runs: m.runs[:0], headrooms: m.headrooms[:0],
		}
	} else if d == resume && m.held < 1e-6 { // no stored permits were promised for its end
		m.hold = 0
		m.fall()
	}
	if m.hold > m.at+m.debt { // until the pause ends nothing is promised: a stretch without a buyer
		m.slot++
		m.free(run{m.slot - 1, m.slot, m.at + m.debt, m.hold - m.at - m.debt, 0})
		m.debt = m.hold - m.at
	}
}

// sell sells permits if they may be used within limit, and reports whether they were sold.
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
		m.note(m.headroom())
		m.deferred -= permits
		return 0, true
	case wait > limit:
		return -1 - wait, false
	}
	if m.bursty && m.store > 0 && (wait == 0 || taken > 0) { // it goes, or the store holds it
		m.note(m.headroom())
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
