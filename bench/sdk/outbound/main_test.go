package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Each row makes its calls, however few; the unpaced ones, too. Those of pace leak nothing (those of failsafe-go
// never close the responses of calls that they retry).
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
