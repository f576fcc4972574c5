package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table of one kind for each rate.
func TestTables(t *testing.T) {
	var out strings.Builder
	tables(t, &out, []float64{2, 3}, regexp.MustCompile("draft"), 1)
	require.Equal(t, 2, strings.Count(out.String(), "the draft's headers"), out.String())
	require.Contains(t, out.String(), "3/s")
}
