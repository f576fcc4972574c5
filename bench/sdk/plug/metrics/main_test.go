package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"
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

func TestNames(t *testing.T) {
	names := []string{"failed server everybody", "refused server everybody"}
	dropCommon(names)
	require.Equal(t, []string{"failed", "refused"}, names)
	at := plotter.XYs{{Y: 5}, {Y: 0}, {Y: 0.5}, {Y: 0}}
	spread(at, 1)
	require.Equal(t, plotter.XYs{{Y: 5}, {Y: 0}, {Y: 2}, {Y: 1}}, at)
}
