package shared

import (
	"math"
	"slices"
)

// A run is a stretch of the queue that was given back and is still ahead.
type run struct{ low, high, begin, length, kept float64 }

// deposit takes back what was taken at a time: permits at once, and what idles in a stretch of the queue that has
// passed. It is worth what would still be there had it been so from then on. Times are from now.
func (m *machine) deposit(permits, taken, begin, stop, worth, most float64) {
	first := len(m.headrooms)
	for first > 0 && (m.headrooms[first-1].time-m.time)*1000 > taken {
		first--
	}
	for i := first; i < len(m.headrooms); i++ {
		r := &m.headrooms[i]
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
	permits = min(permits, m.headroom(), most)
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
			m.deposit(kept, 0, 0, 0, 0, math.Inf(1))
		}
	}
}

// giveBack takes back a slot, or the end of one.
func (m *machine) giveBack(c comeback) {
	if c.sold < m.born { // before the key was lost
		return
	}
	since := (m.time - c.sold) * 1000
	begin, ready, kept, number, most := c.begin-since, c.ready-since, c.kept, c.number, c.most
	ahead := max(0, min(c.length, begin+c.length))
	waits := ready > 0 // then what it held was there since the sale
	if waits {
		ready, most = -since, math.Inf(1)
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
		m.deposit(kept, ready, begin, begin+c.length-ahead, c.worth, most)
	}
}
