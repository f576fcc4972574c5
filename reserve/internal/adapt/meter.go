package adapt

import "time"

// A meter measures how many permits a second are sent: over the last two stretches of half a second
// or, where calls are few, of some calls.
type meter struct {
	begin, last   time.Time // of the stretch
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
	m.last = now
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
