package outbound

import (
	"context"
	"errors"
	"time"

	"github.com/nextfree/pace/reserve"
)

// admit waits until the call may go: it then has its permits, and its place in flight.
func (c *call) admit() error {
	c.begin = c.t.now()
	if err := c.wait(); err != nil {
		return c.blame(err)
	}
	c.phase = granted
	c.bind()
	c.sent = c.t.now()
	for i := range c.charges {
		a := &c.charges[i]
		a.Held.Begin()
		c.t.blocks.hold(c, a)
		if a.limit.used == nil && a.limit.after == nil {
			a.keep()
		}
		if a.rate != nil {
			a.rate.sent(c.sent, a.Permits)
		} else {
			c.t.derated.hold(a, c.sent)
		}
	}
	return nil
}

// wait waits for the end of a backoff, and then for permits and a place.
func (c *call) wait() error {
	c.unbind()
	defer c.waits()()
	if err := c.backOff(); err != nil {
		return err
	}
	return c.enter()
}

// patience is how often a call gives its permits back because there is no place for it. After that it
// keeps them: where others use up both, it would never have both at a time.
const patience = 4

// enter waits for permits and a place. A call that waits for permits holds no place, and a call that waits for
// a place holds no permits. So a stopped host takes no place from another, and a stall does not end in a burst.
func (c *call) enter() error {
	maxWait := c.t.maxWait
	for round := 0; ; round++ {
		if c.place.full() {
			if err := c.awaitPlace(); err != nil {
				return err
			}
			if err := c.permits(0); !isWait(err) {
				return err
			}
			c.endProbes()
			c.place.leave()
		}
		if err := c.permits(maxWait); err != nil || c.place.take() {
			return err
		}
		if round >= patience {
			err := c.awaitPlace()
			if err != nil {
				c.giveBack()
			}
			return err
		}
		c.giveBack()
		if maxWait < reserve.Forever {
			maxWait = max(0, c.t.maxWait-c.t.now().Sub(c.begin))
		}
	}
}

// awaitPlace waits for a place in flight, until WithMaxWait is over: how long calls are out is not known before.
func (c *call) awaitPlace() error {
	var late <-chan time.Time
	if c.t.maxWait < reserve.Forever {
		timer := c.t.newTimer(c.begin.Add(c.t.maxWait).Sub(c.t.now()))
		defer timer.Stop()
		late = timer.Chan()
	}
	err := c.place.wait(c.ctx, late)
	if err == errLate {
		err = &reserve.WaitError{Wait: reserve.Forever, MaxWait: c.t.maxWait}
	}
	return err
}

// permits waits for the permits of all limits, for maxWait at most.
func (c *call) permits(maxWait time.Duration) error {
	if c.late = (time.Time{}); maxWait < reserve.Forever {
		c.late = c.t.now().Add(maxWait)
	}
	for {
		err := c.acquire(maxWait)
		if !errors.Is(err, errMoved) {
			return err
		}
		c.endProbes()
		c.plan()
		if maxWait < reserve.Forever {
			maxWait = max(0, c.late.Sub(c.t.now()))
		}
	}
}

// acquire waits for the permits of all limits, in the order of the calls or of their classes.
func (c *call) acquire(maxWait time.Duration) error {
	if c.t.classes != nil && len(c.limits) > 0 {
		return c.inOrder(maxWait)
	}
	return c.t.lines.Acquire(c.ctx, c.keys, c.number, c.limits, maxWait)
}

// giveBack gives the permits back, and lets another call probe.
func (c *call) giveBack() {
	if c.account != nil {
		c.account.Cancel()
		c.account = nil
	}
	for i := range c.charges {
		c.charges[i].Held.Cancel()
	}
	c.endProbes()
}

// isWait reports whether an error says that permits would come too late.
func isWait(err error) bool {
	var wait *reserve.WaitError
	return errors.As(err, &wait)
}

// open waits until the call may ask for permits: until something is known of an adaptive rate.
func (a *charge) open(ctx context.Context, c *call) (err error) {
	a.probe, err = a.rate.open(ctx, c.late, c.t.maxWait)
	return err
}
