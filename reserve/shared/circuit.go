package shared

import (
	"sync"
	"sync/atomic"
	"time"
)

// A circuit keeps callers from waiting for a server that does not answer: see "When the store fails". Where every
// fourth call fails, three failures in a row are no outage. Probes are at multiples of the distance since 1970.
type circuit struct {
	troubled atomic.Bool  // since the last answer something failed; so that asking costs a load
	answered atomic.Int64 // when the last answer came; 0: none
	epoch    int64        // when the limiter's time began, in nanoseconds since 1970

	mu       sync.Mutex
	failures int
	probing  bool
	probed   chan struct{} // closed when the probe ends; nil: no caller waits for it
	found    int           // answers in a row to callers that probe
	until    int64         // when the next may probe; 0: the circuit is closed
	pause    int64
	last     error
}

const (
	tolerated = 3
	// certain failures in a row open it, however lately the server answered; or one without any answer for its timeout.
	certain    = 8
	firstPause = int64(50 * time.Millisecond)
	lastPause  = 8 * firstPause
)

// enter tells the caller to probe, and then to call tried; or to wait for probed, if not nil.
func (c *circuit) enter(now int64) (probe bool, probed <-chan struct{}, err error) {
	if !c.troubled.Load() {
		return false, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.until == 0:
		return false, nil, nil
	case now < c.until || c.probing:
		return false, c.probed, c.last
	}
	c.probing = true
	if now-c.until > c.pause {
		c.probed = make(chan struct{})
	}
	return true, nil, nil
}

// outcome returns the last failure, or nil if the circuit is closed.
func (c *circuit) outcome() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == 0 {
		return nil
	}
	return c.last
}

func (c *circuit) isOpen() bool { return c.outcome() != nil }

// report records a call, whose failure counts as so many: 0 if it is not the server's.
func (c *circuit) report(now int64, err error, failures int) {
	if err == nil {
		c.answered.Store(max(1, now))
		if !c.troubled.Load() {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && c.until == 0: // one of before it opened says nothing
		c.close()
	case err != nil && failures > 0:
		c.failures += failures - 1
		c.fail(now, err)
	}
}

func (c *circuit) tried(now int64, answers int, err error) (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
	if c.probed != nil {
		close(c.probed)
		c.probed = nil
	}
	if err != nil {
		c.found = 0
		c.fail(now, err)
		c.wait(now, min(2*c.pause, lastPause))
		return false
	}
	if c.found += answers; c.found < tolerated {
		return false
	}
	c.answered.Store(max(1, now))
	c.close()
	return true
}

func (c *circuit) close() {
	c.failures, c.found, c.until, c.pause, c.last = 0, 0, 0, 0, nil
	c.troubled.Store(false)
}

func (c *circuit) fail(now int64, err error) {
	if c.until == 0 {
		c.failures++
		silent := now-c.answered.Load() >= firstPause
		if c.failures >= tolerated && silent || c.failures >= certain {
			c.wait(now, firstPause)
		}
	}
	c.last = err
	c.troubled.Store(true)
}

func (c *circuit) wait(now, pause int64) {
	c.pause = pause
	c.until = ((c.epoch+now+pause/2)/pause+1)*pause - c.epoch
}
