package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	var b strings.Builder
	Table(&b, []string{"limiter", ">p50, µs"}, [][]string{{"pace", "8.0"}, {"x/time/rate", "1999.0"}})
	require.Equal(t, ""+
		"| limiter     | p50, µs |\n"+
		"|-------------|--------:|\n"+
		"| pace        |     8.0 |\n"+
		"| x/time/rate |  1999.0 |\n", b.String())
}

func TestMachine(t *testing.T) {
	require.Regexp(t, `^\d{4}-\d\d-\d\d, \S.* \w+/\w+, .+, \d+ CPUs$`, Machine())
}
