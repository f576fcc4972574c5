package shared

import (
	"math"
	"slices"
)

// A room is what would still have fitted right before permits were taken at once.
type room struct{ time, fits float64 }

// room is what still fits. Paid upfront, the store also holds what the others wait for.
func (m *machine) room() float64 {
	fits := m.store - m.stored - m.deferred
	if m.terms.upfront && m.debt > 0 {
		fits -= max(m.peak, m.newer)
	}
	return max(0, fits)
}

// spare returns the deferred permits that may be used at once. These are all, if they suffice for the largest promise
// that may not be paid for yet, and there is no pause.
func (m *machine) spare() float64 {
	if m.bursty && m.at >= m.hold && (m.terms.upfront || m.deferred >= max(m.peak, m.newer)) {
		return m.deferred
	}
	return 0
}

// note remembers the room right before a request goes.
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
