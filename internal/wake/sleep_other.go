//go:build !linux

package wake

import (
	"context"
	"time"
)

// sleep is a plain timer: the runtimes of the other systems wait with a finer clock than milliseconds.
func sleep(ctx context.Context, start time.Time, d time.Duration, moved <-chan struct{}) {
	sleepOnTimer(ctx, start, d, moved)
}
