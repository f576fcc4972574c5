package shared

import (
	"sync"
	"sync/atomic"
	"time"
)

// A circuit keeps callers from waiting for a server that does not answer: see "When the store fails". Probes are at
// multiples of the distance since 1970.
type circuit struct {
	troubled atomic.Bool  // since the last answer something failed; so that asking costs a load
	answered atomic.Int64 // when the last answer came; 0: none
	epoch    int64        // when the limiter's time began, in nanoseconds since 1970

	mu       sync.Mutex
	failures int
	probed   chan struct{} // closed when the probe ends; nil: there is none
	awaited  bool          // by all callers, not only by the caller that began it
	begun    int64         // when the last probe began
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

// enter tells the caller to begin a probe, and to wait for probed if not nil.
func (c *circuit) enter(now int64) (probe bool, probed <-chan struct{}, err error) {
	if !c.troubled.Load() {
		return false, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.until == 0:
		return false, nil, nil
	case c.probed != nil && c.awaited:
		return false, c.probed, nil
	case c.probed != nil || now < c.until:
		return false, nil, c.last
	}
	c.probed, c.awaited, c.begun = make(chan struct{}), now-c.until > c.pause, now
	return true, c.probed, nil
}

func (c *circuit) outcome() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == 0 {
		return nil
	}
	return c.last
}

func (c *circuit) isOpen() bool { return c.outcome() != nil }

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
	case err != nil:
		c.failures += failures - 1
		c.fail(now, err)
	}
}

func (c *circuit) probedWith(now int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.probed)
	c.probed = nil
	if err == nil {
		c.answered.Store(max(1, now))
		c.close()
		return
	}
	c.fail(now, err)
	c.wait(c.begun, min(2*c.pause, lastPause))
}

func (c *circuit) close() {
	c.failures, c.until, c.pause, c.last = 0, 0, 0, nil
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
