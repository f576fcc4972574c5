package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The dashboard has queries in every panel.
func TestDashboard(t *testing.T) {
	panels, err := readDashboard("../../../../reserve/plug/paceprom/dashboard.json")
	require.NoError(t, err)
	require.Len(t, panels, 9)
	for _, p := range panels {
		require.NotEmpty(t, p.queries, p.title)
	}
}
