package main

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNextWait(t *testing.T) {
	for _, o := range orders {
		for _, c := range contenders {
			wait := nextWait(c, 20, o)
			if c.pace {
				require.Equal(t, interval, wait, "%s, %s", c.name, o.name)
			}
		}
	}
	// In failsafe-go all that have given up are still before the next one.
	require.InDelta(t, 2.1, nextWait(contenders[3], 20, orders[0]).Seconds(), 0.05)
	require.InDelta(t, 2.1, nextWait(contenders[3], 20, orders[1]).Seconds(), 0.05)
}

func TestOrders(t *testing.T) {
	require.Equal(t, []int{0, 1, 2}, orders[0].leave(3, nil))
	require.Equal(t, []int{2, 1, 0}, orders[1].leave(3, nil))
	require.Equal(t, []int{1, 1, 1}, orders[1].sizes(3, nil))
}

func TestRun(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ghosts.png")
	var table bytes.Buffer
	ok, err := run(t.Context(), &table, []crowd{{100, time.Hour}}, 1, name)
	require.NoError(t, err)
	require.True(t, ok, table.String())
	require.Regexp(t, `\| +1000 \| pace, WithBurst\(0\) +(\| +0\.10 ){5}\| yes`, table.String())
	drawn, err := os.ReadFile(name)
	require.NoError(t, err)
	_, err = png.Decode(bytes.NewReader(drawn))
	require.NoError(t, err)

	ok, err = run(t.Context(), &table, []crowd{{100, 0}}, 1, name)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := run(ctx, &bytes.Buffer{}, []crowd{{100, time.Hour}}, 1, filepath.Join(t.TempDir(), "ghosts.png"))
	require.ErrorIs(t, err, context.Canceled)
}
