//go:build !race

package reply

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A response that says nothing of limits, as most do, costs no memory.
func TestAllocations(t *testing.T) {
	r := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/html"}, "Server": {"a"}}}
	now := time.Now()
	require.Zero(t, testing.AllocsPerRun(100, func() { Read(r, now) }))
}
