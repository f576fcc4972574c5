package outbound

import (
	"context"
	"errors"
	"time"

	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
)

// errChanged tells a waiting call that its limits have changed.
var errChanged = errors.New("outbound: the limits of the call have changed")

func (c *call) admit() error {
	c.attempt.begin = c.t.now()
	if err := c.wait(); err != nil {
		return c.expired(c.blame(err))
	}
	c.attempt.take()
	return nil
}

func (c *call) wait() error {
	counted := c.states
	for _, s := range counted {
		s.waiting.Add(1)
	}
	w := c.watch()
	defer func() {
		for _, s := range counted {
			s.waiting.Add(-1)
		}
		w.end()
	}()
	ctx, end := c.waiting()
	defer end()
	if err := c.backOff(ctx); err != nil {
		return err
	}
	var old *queue.Place // granted, before the limits changed
	defer func() { giveUp(&old) }()
	begin := c.attempt.begin
	if !c.resume.IsZero() {
		begin = c.t.now()
	}
	for maxWait := c.t.maxWait; ; {
		err := c.acquire(ctx, maxWait, &old)
		if err == nil {
			c.attempt.way, c.attempt.place = &c.ways[c.place.Option()], c.place
			c.attempt.phase = granted // before a hook, which may panic
		}
		if !errors.Is(err, errChanged) {
			return err
		}
		if err = c.chargeWays(); err != nil {
			return err
		}
		if c.t.maxWait < reserve.Forever {
			maxWait = max(0, c.t.maxWait-c.t.now().Sub(begin))
		}
	}
}

// acquire waits for the call's permits. If its limits change meanwhile, it returns errChanged, and the place that was
// granted in old: that is given up when the next has entered, so that no call behind goes first.
func (c *call) acquire(ctx context.Context, maxWait time.Duration, old **queue.Place) error {
	for _, w := range c.ways.served {
		if w.respaced() { // since the call's last attempt
			return errChanged
		}
	}
	l, err := c.ask()
	if err != nil {
		return err
	}
	defer c.t.lines.leave(l)
	err = l.Enter(ctx, c.place, maxWait)
	if had := giveUp(old); had && errors.As(err, new(*reserve.WaitError)) {
		return errChanged // its permits may be what was missing
	}
	if err != nil {
		return err
	}
	if err = c.place.Wait(ctx); err != nil {
		return err
	}
	w := &c.ways[c.place.Option()]
	if c.place.Renew != nil && c.changed(w) || w.respaced() { // after the last Renew, before the grant
		*old = c.place
		return errChanged
	}
	return nil
}

// giveUp cancels a place, if there is any.
func giveUp(p **queue.Place) bool {
	if *p == nil {
		return false
	}
	(*p).Cancel()
	*p = nil
	return true
}
