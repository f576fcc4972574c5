package main

import (
	"strings"
	"testing"

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
			e := experiment{calls: 12, goroutines: 12}
			o := e.run(t.Context(), r)
			require.Equal(t, e.calls, o.Answered)
			require.Equal(t, o.seen, e.calls+o.refused)
			require.Len(t, o.cells(e), 8)
		})
	}
}
