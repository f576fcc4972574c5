package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table of one kind.
func TestTable(t *testing.T) {
	s := settings{runs: 1, goroutines: 8, burst: 0.2, seconds: 2}
	require.NoError(t, s.parse("20,30", "draft", "5ms-20ms"))
	var out strings.Builder
	s.print(t, &out)
	require.Equal(t, 2, strings.Count(out.String(), "the draft's headers"), out.String())
	require.Contains(t, out.String(), "30/s")
}

// Arguments that make no sense are refused.
func TestBadArguments(t *testing.T) {
	for _, c := range [][3]string{{"x", ".", "1ms-2ms"}, {"0", ".", "1ms-2ms"}, {"5", "(", "1ms-2ms"}, {"5", ".", "1"}, {"5", ".", "2ms-1ms"}} {
		s := settings{runs: 1, goroutines: 1}
		require.Error(t, s.parse(c[0], c[1], c[2]), "%v", c)
	}
}
