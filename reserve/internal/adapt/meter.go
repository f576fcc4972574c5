package adapt

import (
	"math"
	"time"
)

// A meter measures how many permits a second are sent: over the last two stretches of half a second
// or, where calls are few, of some calls.
type meter struct {
	first, begin  time.Time // of all, and of the stretch
	count, calls  float64   // in the stretch
	total         float64   // calls
	before        float64   // permits a second, in the stretch before
	beforeIsKnown bool
}

const (
	stretch    = 500 * time.Millisecond
	few        = 4                      // calls: a stretch has at least so many
	leastMeter = 100 * time.Millisecond // for a first guess
	idle       = 4 * time.Second        // a stretch that is longer has ended, whatever was sent
)

// add counts a call.
func (m *meter) add(now time.Time, permits float64) {
	d := now.Sub(m.begin)
	if m.total == 0 {
		m.first = now
	}
	switch {
	case m.total == 0 || d > idle && m.calls < few:
		m.begin, m.count, m.calls, m.beforeIsKnown = now, 0, 0, false
	case d >= stretch && m.calls >= few:
		m.before, m.beforeIsKnown = m.count/d.Seconds(), true
		m.begin, m.count, m.calls = now, 0, 0
	}
	m.count += permits
	m.calls++
	m.total++
}

// skip leaves out a time in which nothing can be sent.
func (m *meter) skip(d time.Duration) {
	if m.total > 0 {
		m.begin = m.begin.Add(d)
	}
}

// perSecond returns how many are sent, if enough is known: the more of the two stretches, since the one before
// lags behind a rate that rises, and the latest one has only begun.
func (m *meter) perSecond(now time.Time) (float64, bool) {
	d := now.Sub(m.begin)
	latest, known := m.count/d.Seconds(), m.calls > 1 && d >= leastMeter
	switch {
	case !m.beforeIsKnown:
		return latest, known
	case known:
		return max(m.before, latest), true
	default:
		return m.before, true
	}
}

// A record is the most that a server accepted lately, in permits a second: over stretches of half a
// second, or of eight calls where that takes longer. It halves in 3 s, or in 44 calls where that takes
// longer.
type record struct {
	rate         float64
	at, begin    time.Time // of the rate, and of the stretch
	count, calls float64   // in the stretch
}

const (
	manyRecord = 8.
	halfRecord = 3.  // seconds
	slowRecord = 44. // calls
)

// add counts a call that was accepted.
func (r *record) add(now time.Time, permits float64) {
	if r.calls == 0 {
		r.begin = now
	}
	if d := now.Sub(r.begin); d >= stretch && r.calls >= manyRecord {
		halves := min(max(0, now.Sub(r.at).Seconds())/halfRecord, r.calls/slowRecord)
		r.rate = max(r.count/d.Seconds(), r.rate*math.Exp2(-halves))
		r.at, r.begin, r.count, r.calls = now, now, 0, 0
	}
	r.count += permits
	r.calls++
}

// skip leaves out a time in which nothing can be sent.
func (r *record) skip(d time.Duration) { r.at, r.begin = r.at.Add(d), r.begin.Add(d) }
