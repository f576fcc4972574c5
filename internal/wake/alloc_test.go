//go:build !race

package wake

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The race detector makes sync.Pool drop a part of what it gets, and so timers are made anew.
func TestTimerAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := new(Sleeper).fresh()
	for _, d := range []time.Duration{100 * time.Microsecond, 2 * time.Millisecond} {
		require.Zero(t, testing.AllocsPerRun(50, func() { s.Sleep(ctx, d) }), d)
		require.Zero(t, testing.AllocsPerRun(50, func() { s.sleepOnTimer(ctx, time.Now(), d) }), d)
	}
}
