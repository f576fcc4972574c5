package engine

import (
	"context"
	"math"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/wake"
)

// A Clock reads nanoseconds since an epoch. It is immutable.
type Clock struct {
	Fake  *clockwork.Clock // nil: the real one
	Epoch time.Time
}

func On(c clockwork.Clock) Clock { return Clock{Fake: &c} }

// Same reports whether both are the same clock, at any epochs.
func (c *Clock) Same(other *Clock) bool {
	if c.Fake == nil || other.Fake == nil {
		return c.Fake == other.Fake
	}
	return *c.Fake == *other.Fake
}

func (c Clock) Begun() Clock {
	c.Epoch = time.Now()
	if c.Fake != nil {
		c.Epoch = (*c.Fake).Now()
	}
	return c
}

func (c *Clock) Now() int64 {
	if c.Fake == nil {
		return int64(time.Since(c.Epoch)) + slept.Load() // half the price of time.Now
	}
	return int64((*c.Fake).Since(c.Epoch))
}

// Time converts a reading. It counts from the present, because the wall clock may have been set since the epoch.
func (c *Clock) Time(t int64) time.Time {
	if c.Fake != nil {
		return c.Epoch.Add(time.Duration(t))
	}
	now := time.Now()
	return now.Add(time.Duration(saturate.Add(t, -c.reading(now))))
}

// Since is the inverse of Time.
func (c *Clock) Since(t time.Time) int64 {
	if c.Fake != nil || t != t.Round(0) { // Round(0) takes the monotonic part away
		return c.reading(t)
	}
	now := time.Now()
	return saturate.Add(c.reading(now), int64(t.Sub(now)))
}

func (c *Clock) reading(t time.Time) int64 {
	d := int64(t.Sub(c.Epoch))
	if c.Fake == nil {
		d = saturate.Add(d, slept.Load())
	}
	return d
}

func (c *Clock) Deadline(ctx context.Context) int64 {
	if d, ok := ctx.Deadline(); ok {
		return c.Since(d)
	}
	return saturate.Never
}

const never = saturate.Never

const forever time.Duration = math.MaxInt64

func until(t, now int64) time.Duration { return time.Duration(saturate.Add(t, -now)) }

func sleepOn(ctx context.Context, c *Clock, now, end int64, s *wake.Sleeper) {
	timer := (*c.Fake).NewTimer(until(end, now))
	defer timer.Stop()
	// The clock may have moved before the timer existed.
	if later := c.Now(); later != now {
		timer.Reset(max(0, until(end, later)))
	}
	select {
	case <-timer.Chan():
	case <-s.Woken():
	case <-ctx.Done():
	}
}
