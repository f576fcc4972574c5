package reserve

import "math"

// A pausable clock turns real time into the limiter's, which stands still during
// pauses. Until must be at or before the first time.
type pausable struct {
	until  int64  // the end of the latest pause, real
	paused int64  // the length of all pauses, to the end of the latest
	last   *pause // the latest; nil until somebody needs one
}

// A pause is remembered for as long as somebody holds a reservation from before it:
// each points to the latest pause of its time, and from there to later ones. So
// nobody keeps a list, and what nobody can ask about is garbage.
type pause struct {
	begin  int64 // when the limiter's time stood still
	paused int64 // the length of all pauses, this one included
	next   *pause
}

// at returns the limiter's time at a real one, and for how long it will stand still.
func (c *pausable) at(real int64) (now, standing int64) {
	if real < c.until {
		return c.until - c.paused, c.until - real
	}
	return real - c.paused, 0
}

// pauseUntil stops the clock from a real time to another, and reports whether that
// changes anything.
func (c *pausable) pauseUntil(real, until int64) bool {
	now, standing := c.at(real)
	more := add(until, -max(real, c.until))
	if more <= 0 {
		return false
	}
	latest := c.latest()
	c.paused = add(c.paused, more)
	c.until = until
	if standing == 0 {
		c.last = &pause{begin: now, paused: c.paused}
		latest.next = c.last
	} else {
		latest.paused = c.paused
	}
	return true
}

// latest returns the latest pause. The first one is no pause at all.
func (c *pausable) latest() *pause {
	if c.last == nil {
		c.last = &pause{begin: math.MinInt64}
	}
	return c.last
}

// real turns a time of the limiter's, promised during or after the given pause and
// before the next, into real time. Later pauses move it too, if it had not come by then.
func (p *pause) real(t int64) int64 {
	paused := p.paused
	for p = p.next; p != nil && p.begin < t; p = p.next {
		paused = p.paused
	}
	return add(t, paused)
}

// add returns a + b, saturated.
func add(a, b int64) int64 {
	switch sum := a + b; {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}
