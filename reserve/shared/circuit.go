package shared

import (
	"sync"
	"sync/atomic"
	"time"
)

// A circuit keeps callers from waiting for a server that does not answer. After three failures in a
// row it opens. Then one caller tries again, at times that double in distance from 50 to 400 ms,
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
	found    int   // answers in a row to those who try
	until    int64 // when the next may try; 0: the circuit is closed
	pause    int64
	last     error
}

const (
	tolerated  = 3
	firstPause = int64(50 * time.Millisecond)
	lastPause  = 8 * firstPause
)

// enter reports whether the server may be asked, and whether the caller is the one
// that tries: then it must say how that went (tried). If not, err is the last failure.
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
func (c *circuit) report(now int64, err error, counts bool) {
	if err == nil {
		c.answers.Add(1)
		if !c.troubled.Load() {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && c.until == 0: // one of before it opened says nothing
		c.close()
	case err != nil && counts:
		c.fail(now, err)
	}
}

// tried says how trying went: how many answers there were, and then what went wrong. After three in
// a row the circuit is closed, and it reports true. If they are too few, the next caller goes on.
func (c *circuit) tried(now int64, answers int, err error) (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
	if err != nil {
		c.found = 0
		c.fail(now, err)
		c.wait(now, min(2*c.pause, lastPause))
		return false
	}
	if c.found += answers; c.found < tolerated {
		return false
	}
	c.answers.Add(1)
	c.close()
	return true
}

func (c *circuit) close() {
	c.failures, c.found, c.until, c.pause, c.last = 0, 0, 0, 0, nil
	c.troubled.Store(false)
}

func (c *circuit) fail(now int64, err error) {
	if c.until == 0 {
		if c.failures++; c.failures >= tolerated {
			c.wait(now, firstPause)
		}
	}
	c.last = err
	c.troubled.Store(true)
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
