package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// The table of real time has a row for each client, and a cell for each kind of server.
func TestCells(t *testing.T) {
	var table strings.Builder
	cells(&table, 12)
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	require.Len(t, lines, 2+4+len(cellPeers))
	for _, line := range lines[2:] {
		require.Equal(t, len(cellKinds)+2, strings.Count(line, "|"), line)
		require.NotContains(t, line, "| |")
	}
}

// Each row makes its calls, however few; the unpaced ones, too. pace's leak nothing (failsafe-go's
// never close the responses that are retried).
func TestRows(t *testing.T) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if strings.HasPrefix(r.name, "pace") {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			}
			e := experiment{jobs: 12, goroutines: 12, limit: time.Minute}
			o := e.run(r)
			require.Equal(t, e.jobs, o.answered)
			require.Equal(t, o.seen, e.jobs+o.refused)
			require.Len(t, o.cells(e), 8)
		})
	}
}
