package inbound

import (
	"math"
	"sync"
	"time"
)

// A line tells refused clients when to come back, so that they don't do so together.
// Nothing is reserved for them: whoever comes first is served first.
type line struct {
	mu    sync.Mutex
	epoch time.Time
	last  time.Duration // since the epoch: when the last one in line comes back
	told  uint64
}

// longestLine bounds what clients that never come back can do to those who do.
const longestLine = time.Minute

// longestWait is the longest time that a client is told.
const longestWait = 365 * 24 * time.Hour

// turn returns when the next client is to come back, which could be served after
// wait. If all share a limiter that serves one in each interval, it comes an
// interval after the one before. Otherwise (interval is 0), or if the line is
// too long, its time is any in the jitter, far from those of the clients before.
func (l *line) turn(wait, interval, jitter time.Duration) time.Duration {
	if jitter == 0 || wait >= longestWait {
		return min(wait, longestWait)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.epoch.IsZero() {
		l.epoch = time.Now()
	}
	if interval > 0 {
		due := later(time.Since(l.epoch), wait)
		next := max(due, later(l.last, interval))
		if next-due <= longestLine {
			l.last = next
			return min(wait+next-due, longestWait)
		}
		jitter = longestLine
	}
	jitter = max(jitter, wait/4)
	// The multiples of the golden ratio, less their whole parts, are spread evenly
	// however many are taken, and neighbours are far apart (Knuth, TAOCP 6.4).
	const golden = 0x9E3779B97F4A7C15 // 2^64 / 1.618...
	part := float64(l.told*golden>>11) / (1 << 53)
	l.told++
	return min(later(wait, time.Duration(part*float64(jitter))), longestWait)
}

// later returns a + b (not negative), or the longest duration if that is beyond it.
func later(a, b time.Duration) time.Duration {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// seconds returns a number of seconds as a duration, saturated.
func seconds(s float64) time.Duration {
	if ns := s * 1e9; ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// ceilSeconds rounds up to whole seconds, at least 1.
func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(1, s)
}
