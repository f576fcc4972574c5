package shared

import (
	"math"
	"slices"
)

// A headroom is what would still have fitted right before permits were taken at once.
type headroom struct{ time, fits float64 }

// headroom is what still fits. Paid upfront, the store also holds what the others wait for.
func (m *machine) headroom() float64 {
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

// note remembers the headroom right before a request goes.
func (m *machine) note(before float64) {
	n := len(m.headrooms)
	for ; n > 0; n-- {
		if r := m.headrooms[n-1]; r.time == m.time {
			before = min(before, r.fits)
		} else if r.fits < before {
			break
		}
	}
	m.headrooms = append(m.headrooms[:n], headroom{m.time, before})
	m.squeeze(shortHeadrooms)
}

// squeeze leaves at most so many headrooms, or a few less. Neighbours merge where that loses least: the later time,
// the lower headroom.
func (m *machine) squeeze(most int) {
	if len(m.headrooms) <= most {
		return
	}
	for len(m.headrooms) > most*5/6 {
		least, at := math.Inf(1), 0
		for i := range len(m.headrooms) - 1 {
			if step := m.headrooms[i+1].fits - m.headrooms[i].fits; step < least {
				least, at = step, i
			}
		}
		m.headrooms[at+1].fits = m.headrooms[at].fits
		m.headrooms = slices.Delete(m.headrooms, at, at+1)
	}
}
