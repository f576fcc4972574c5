package shared

import (
	"sync"
	"sync/atomic"
	"time"
)

// A circuit keeps callers from waiting for a server that does not answer. After three failures in a
// row it opens. Then one caller tries again, at times that double in distance from 50 to 800 ms,
// while the others go on without. The times are multiples of the distance since 1970: so processes
// that lost the server at different times find it again together, as far as their clocks agree, and
// none has it for itself while others still use their shares.
type circuit struct {
	troubled atomic.Bool  // since the last answer something failed; so that asking costs a load
	answers  atomic.Int64 // how many there have been
	epoch    int64        // when the limiter's time began, in nanoseconds since 1970

	mu       sync.Mutex
	failures int
	probing  bool
	until    int64 // when the next may try; 0: the circuit is closed
	pause    int64
	last     error
}

const (
	tolerated  = 3
	firstPause = int64(50 * time.Millisecond)
	lastPause  = 16 * firstPause
)

// enter reports whether the server may be asked, and whether the caller is the one
// that tries: then it must report how that went. If not, err is the last failure.
func (c *circuit) enter(now int64) (probe bool, err error) {
	if !c.troubled.Load() {
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.until == 0:
		return false, nil
	case now < c.until || c.probing:
		return false, c.last
	}
	c.probing = true
	return true, nil
}

// report says how asking went: nil if there was an answer. A failure that is not
// the server's does not count.
func (c *circuit) report(now int64, probe bool, err error, counts bool) {
	if err == nil {
		c.answers.Add(1)
		if !probe && !c.troubled.Load() {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if probe {
		c.probing = false
	}
	switch {
	case err == nil && (probe || c.until == 0): // one of before it opened says nothing
		c.failures, c.until, c.pause, c.last = 0, 0, 0, nil
		c.troubled.Store(false)
	case err == nil || !counts:
	case c.until == 0:
		if c.failures++; c.failures >= tolerated {
			c.wait(now, firstPause)
		}
	case probe:
		c.wait(now, min(2*c.pause, lastPause))
	}
	if err != nil && counts {
		c.last = err
		c.troubled.Store(true)
	}
}

// open opens the circuit at once: there were too many answers that did not come, if not in a row.
func (c *circuit) open(now int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = err
	c.troubled.Store(true)
	if c.until == 0 {
		c.wait(now, firstPause)
	}
}

// wait lets nobody try for about that long.
func (c *circuit) wait(now, pause int64) {
	c.pause = pause
	c.until = ((c.epoch+now+pause/2)/pause+1)*pause - c.epoch
}
