package adapt

import "time"

// A meter measures the permits answered per second, over two stretches of half a second or four calls.
type meter struct {
	begin        time.Time // of this stretch
	count, calls float64   // in it
	before       float64   // permits per second in the last one, or 0
}

const (
	stretch = 500 * time.Millisecond
	few     = 4. // calls, at least, in a stretch, and at most in one step of time
)

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

// skip leaves out a stop.
func (m *meter) skip(d time.Duration) {
	if !m.begin.IsZero() {
		m.begin = m.begin.Add(d)
	}
}

// perSecond returns the larger stretch's rate, or 0 if unknown.
func (m *meter) perSecond(now time.Time) float64 {
	d := now.Sub(m.begin)
	if d < stretch/5 || m.calls < 2 {
		return m.before
	}
	return max(m.before, m.count/d.Seconds())
}
