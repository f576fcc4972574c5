package shared

import (
	"sync"
	"sync/atomic"
	"time"
)

// A circuit keeps callers from waiting for a server that does not answer. After three
// failures in a row it opens for 50 ms. Then one caller tries again, while the others go on
// without; each time it fails the circuit stays open for twice as long, up to 1 s.
type circuit struct {
	troubled atomic.Bool  // since the last answer something failed; so that asking costs a load
	returns  atomic.Int64 // how often the server came back

	mu       sync.Mutex
	failures int
	probing  bool
	until    int64 // when the next may try
	pause    int64
	last     error
}

const (
	tolerated  = 3
	firstPause = int64(50 * time.Millisecond)
	lastPause  = int64(time.Second)
)

// enter reports whether the server may be asked, and whether the caller is the one
// who tries: then it must report how that went. If not, err is the last failure.
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
	if err == nil && !probe && !c.troubled.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if probe {
		c.probing = false
	}
	switch {
	case err == nil:
		c.failures, c.until, c.pause, c.last = 0, 0, 0, nil
		if c.troubled.Swap(false) {
			c.returns.Add(1)
		}
	case !counts:
	case c.until == 0:
		c.last = err
		c.troubled.Store(true)
		if c.failures++; c.failures >= tolerated {
			c.pause = firstPause
			c.until = now + c.pause
		}
	case probe:
		c.last = err
		c.pause = min(2*c.pause, lastPause)
		c.until = now + c.pause
	}
}
