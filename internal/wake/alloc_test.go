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
	moved := make(chan struct{})
	for _, d := range []time.Duration{100 * time.Microsecond, 2 * time.Millisecond} {
		require.Zero(t, testing.AllocsPerRun(50, func() { Sleep(ctx, d, moved) }), d)
		require.Zero(t, testing.AllocsPerRun(50, func() { sleepOnTimer(ctx, time.Now(), d, moved) }), d)
	}
}
