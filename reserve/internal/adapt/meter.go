package adapt

import "time"

// A meter measures how many permits a second are answered: over the last two stretches of half a second or, where
// calls are few, of some calls.
type meter struct {
	begin        time.Time // of the stretch
	count, calls float64   // in the stretch
	before       float64   // permits a second, in the stretch before; 0: not known
}

const (
	stretch = 500 * time.Millisecond
	few     = 4 // calls: a stretch has at least so many
)

// add counts a call.
func (m *meter) add(now time.Time, permits float64) {
	if m.begin.IsZero() {
		m.begin = now
	}
	if d := now.Sub(m.begin); d >= stretch && m.calls >= few {
		m.before = m.count / d.Seconds()
		m.begin, m.count, m.calls = now, 0, 0
	}
	m.count += permits
	m.calls++
}

// skip leaves out a time in which nothing can be sent.
func (m *meter) skip(d time.Duration) {
	if !m.begin.IsZero() {
		m.begin = m.begin.Add(d)
	}
}

// perSecond returns how many are answered; 0: it is not known. It is the more of the two stretches, since the one
// before lags behind a rate that rises, and the latest one has only begun.
func (m *meter) perSecond(now time.Time) float64 {
	d := now.Sub(m.begin)
	if d < stretch/5 || m.calls < 2 {
		return m.before
	}
	return max(m.before, m.count/d.Seconds())
}
