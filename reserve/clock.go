package reserve

import (
	"context"
	"math"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/nextfree/pace/internal/wake"
)

// A clock tells nanoseconds since an epoch. It is immutable.
type clock struct {
	fake  clockwork.Clock // nil: the real one
	epoch time.Time
}

// begun returns the clock with now as its epoch.
func (c clock) begun() clock {
	if c.fake == nil {
		c.epoch = time.Now()
	} else {
		c.epoch = c.fake.Now()
	}
	return c
}

// now reads the clock.
func (c *clock) now() int64 {
	if c.fake == nil {
		return int64(time.Since(c.epoch)) // half the price of time.Now
	}
	return int64(c.fake.Since(c.epoch))
}

// time turns a reading of the clock into a time, and since turns it back.
// Between a time without a monotonic part (a date that a server sent) and the epoch
// the wall clock may have been set; between it and now it hardly was.
func (c *clock) time(t int64) time.Time {
	if c.fake != nil {
		return c.epoch.Add(time.Duration(t))
	}
	now := time.Now()
	return now.Add(time.Duration(add(t, -int64(now.Sub(c.epoch)))))
}

func (c *clock) since(t time.Time) int64 {
	if c.fake != nil || t != t.Round(0) { // Round(0) takes the monotonic part away
		return int64(t.Sub(c.epoch))
	}
	now := time.Now()
	return add(int64(now.Sub(c.epoch)), int64(t.Sub(now)))
}

// deadline returns when the context ends by itself, or never.
func (c *clock) deadline(ctx context.Context) int64 {
	if d, ok := ctx.Deadline(); ok {
		return c.since(d)
	}
	return never
}

// sleep blocks until the given time, unless the context ends or the sleeper is woken before. Now
// is the reading of the clock that the caller has looked at.
func (c *clock) sleep(ctx context.Context, now, until int64, s *wake.Sleeper) {
	if c.fake == nil {
		s.Sleep(ctx, time.Duration(add(until, -now)))
		return
	}
	timer := c.fake.NewTimer(time.Duration(add(until, -now)))
	defer timer.Stop()
	// If a fake clock was moved on before the timer was there, the timer would be late.
	if later := c.now(); later != now {
		timer.Reset(time.Duration(max(0, add(until, -later))))
	}
	select {
	case <-timer.Chan():
	case <-s.Woken():
	case <-ctx.Done():
	}
}

// never is the last time that there is.
const never = math.MaxInt64

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

// ended returns the cause of a context that is done. It asks Done, since some
// contexts (clockwork's, on a fake clock) block in Err until they are.
func ended(ctx context.Context) error {
	done := ctx.Done()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return context.Cause(ctx)
	default:
		return nil
	}
}
