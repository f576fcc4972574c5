package shared

import (
	"encoding/binary"
	"fmt"
	"math"
)

const (
	shortMagic, longMagic         = "pac\x03", "pac\x04"
	shortSize, longSize           = 52, 118
	shortHeadrooms, longHeadrooms = 16, 12 // so that a key that is drained takes less than 400 bytes of Redis
	mostRuns                      = 512
)

// A StateError says that the value that a store holds is not the state of a limiter.
type StateError struct{ Size int } // in bytes

func (e *StateError) Error() string {
	return fmt.Sprintf("shared: a value of %d bytes is not the state of a limiter", e.Size)
}

// decode reads a state: nil is a limiter that is new, and full.
func (m *machine) decode(b []byte, t *terms, now float64) error {
	*m = machine{
		terms: t, store: max(0, t.capacity), bursty: t.line.Base == 0 && t.curve.Interval > 0, of: t.capacity,
		anchor: now, time: now, epoch: now, born: now, slot: 1, runs: m.runs[:0], headrooms: m.headrooms[:0],
	}
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
		var r headroom
		next(&r.time, &r.fits)
		m.headrooms = append(m.headrooms, r)
	}
	return nil
}

// encode returns the state as of now.
func (m *machine) encode(now float64) []byte {
	if m.debt == 0 {
		b := make([]byte, 0, shortSize+16*len(m.headrooms))
		b = doubles(append(b, shortMagic...), now, m.time, m.terms.capacity, m.stored, m.slot, m.born)
		return m.encodeHeadrooms(b)
	}
	m.squeeze(longHeadrooms)
	b := make([]byte, 0, longSize+40*len(m.runs)+16*len(m.headrooms))
	b = doubles(append(b, longMagic...), now, m.time, m.terms.capacity, m.stored, m.debt, m.deferred, m.peak, m.newer,
		m.fence, m.hold, m.held, m.epoch, m.slot, m.born)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.runs)))
	for _, r := range m.runs {
		b = doubles(b, r.low, r.high, r.begin, r.length, r.kept)
	}
	return m.encodeHeadrooms(b)
}

func (m *machine) encodeHeadrooms(b []byte) []byte {
	for _, r := range m.headrooms {
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
