package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The test that measureAbuser reports on, in the order in which it hurts: the limit
// for everybody first. All serve the abuser no more than its 2; only pace serves the others.
func TestOneAbuserLocksNobodyOut(t *testing.T) {
	tiers := []tier{{"global", 20, time.Minute, false}, {"client", 2, time.Minute, true}}
	for _, c := range contenders {
		if c.name == bare {
			continue
		}
		abuser, others, err := abuse(c, tiers)
		require.NoError(t, err, c.name)
		require.Equal(t, 2, abuser, c.name)
		want := 0
		if c.name == ours || c.name == withoutHeaders {
			want = 18
		}
		require.Equal(t, want, others, c.name)
	}
}

// Every contender limits, so what is measured is not a middleware that does nothing.
func TestContendersLimit(t *testing.T) {
	for _, c := range contenders {
		wrap, err := c.build([]tier{{"client", 5, time.Hour, true}})
		require.NoError(t, err, c.name)
		want := 5
		if c.name == bare {
			want = 9
		}
		for client := range 3 {
			require.Equal(t, want, served(wrap(hello), client, 9), c.name)
		}
	}
}
