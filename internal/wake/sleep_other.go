//go:build !linux

package wake

import (
	"context"
	"time"
)

// A stretch is the last of a sleep, which is like the rest here.
type stretch struct{}

func (stretch) interrupt() {}

// sleep is a plain timer: the runtimes of the other systems wait with a finer clock than milliseconds.
func (s *Sleeper) sleep(ctx context.Context, start time.Time, d time.Duration) {
	s.sleepOnTimer(ctx, start, d)
}
