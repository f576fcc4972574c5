package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNextWait(t *testing.T) {
	for _, o := range orders {
		for _, c := range contenders[:2] {
			require.Equal(t, time.Second/permitsPerSecond, nextWait(c, 20, o), "%s, %s", c.name, o.name)
		}
	}
	require.Greater(t, nextWait(contenders[2], 20, orders[2]), time.Second, "x/time/rate keeps most of what was reserved")
	// In failsafe-go the next caller still waits behind all callers that gave up.
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
	require.NoError(t, run(&table, name))
	require.Regexp(t, `\| +1000 \| pace, WithBurst\(0\) +(\| +0\.10 ){4}\|`, table.String())
	drawn, err := os.ReadFile(name)
	require.NoError(t, err)
	_, err = png.Decode(bytes.NewReader(drawn))
	require.NoError(t, err)
}
