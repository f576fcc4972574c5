//go:build !race

package wake

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSleeperAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := new(Sleeper)
	for _, d := range []time.Duration{100 * time.Microsecond, 2 * time.Millisecond} {
		require.Zero(t, testing.AllocsPerRun(50, func() {
			s.Reset()
			s.Set(d, 0)
			s.Sleep(ctx)
		}), d)
	}
}
