package reserve

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/wake"
	"github.com/nextfree/pace/reserve/internal/hooks"
)

// never is the largest time.
const never = saturate.Never

// until returns how long it is from now until a time.
func until(t, now int64) time.Duration { return time.Duration(saturate.Add(t, -now)) }

// sleepOn blocks until the given time of a fake clock, unless the context ends or the sleeper is woken
// before. Now is the reading of the clock that the caller has looked at.
func sleepOn(ctx context.Context, c *hooks.Clock, now, end int64, s *wake.Sleeper) {
	timer := (*c.Fake).NewTimer(until(end, now))
	defer timer.Stop()
	// If a fake clock was moved on before the timer was there, the timer would be late.
	if later := c.Now(); later != now {
		timer.Reset(max(0, until(end, later)))
	}
	select {
	case <-timer.Chan():
	case <-s.Woken():
	case <-ctx.Done():
	}
}
