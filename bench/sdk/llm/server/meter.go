package server

import "time"

// A meter counts one thing that is limited, such as tokens: either exactly, as what was charged in
// the window that ends now, or as a token bucket that is full at the start and holds what a window
// allows.
type meter struct {
	name   string
	limit  int // in a window
	said   int // the limit that headers tell: in a minute
	window time.Duration

	// Exact:
	recent []*charge // those of the last window, oldest first
	sum    int       // of recent

	// A bucket:
	bucket bool
	level  float64
	filled time.Time // when the level was worked out
}

// A charge is what a call was charged, which may be corrected later.
type charge struct {
	at time.Time
	n  int
}

// newMeter returns nil if there is no limit.
func newMeter(name string, limit, said int, window time.Duration, bucket bool) *meter {
	if limit == 0 {
		return nil
	}
	return &meter{name: name, limit: limit, said: said, window: window, bucket: bucket, level: float64(limit)}
}

// pass forgets what is too old.
func (m *meter) pass(now time.Time) {
	if m.bucket {
		if !m.filled.IsZero() {
			m.level = min(float64(m.limit), m.level+float64(m.limit)*now.Sub(m.filled).Seconds()/m.window.Seconds())
		}
		m.filled = now
		return
	}
	for len(m.recent) > 0 && now.Sub(m.recent[0].at) >= m.window {
		m.sum -= m.recent[0].n
		m.recent = m.recent[1:]
	}
}

// left returns how much may be charged now. It is negative if corrections have gone beyond the
// limit.
func (m *meter) left(now time.Time) int {
	m.pass(now)
	if m.bucket {
		return int(m.level)
	}
	return m.limit - m.sum
}

// take charges n.
func (m *meter) take(now time.Time, n int) *charge {
	m.pass(now)
	c := &charge{now, n}
	if m.bucket {
		m.level -= float64(n)
	} else {
		m.recent = append(m.recent, c)
		m.sum += n
	}
	return c
}

// correct has a charge be n.
func (m *meter) correct(now time.Time, c *charge, n int) {
	m.pass(now)
	switch {
	case m.bucket:
		m.level = min(float64(m.limit), m.level+float64(c.n-n))
	case now.Sub(c.at) < m.window:
		m.sum += n - c.n
	}
	c.n = n
}

// wait returns how long it takes until n may be charged, if nothing else is.
func (m *meter) wait(now time.Time, n int) time.Duration {
	m.pass(now)
	if m.bucket {
		missing := max(0, float64(n)-m.level)
		return time.Duration(missing / float64(m.limit) * float64(m.window))
	}
	missing := n - (m.limit - m.sum)
	for _, c := range m.recent {
		if missing <= 0 {
			break
		}
		missing -= c.n
		if missing <= 0 {
			return c.at.Add(m.window).Sub(now)
		}
	}
	return 0
}

// untilFull returns how long it takes until nothing is used any more, if nothing else is charged.
func (m *meter) untilFull(now time.Time) time.Duration {
	m.pass(now)
	if m.bucket {
		return m.wait(now, m.limit)
	}
	if len(m.recent) == 0 {
		return 0
	}
	return m.recent[len(m.recent)-1].at.Add(m.window).Sub(now)
}
