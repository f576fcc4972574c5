package rate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The slowest limits are limits, too.
func TestSlowest(t *testing.T) {
	for _, limit := range []Limit{0, 1e-300, 1e-6} {
		lim := NewLimiter(limit, 1_000_000)
		require.True(t, lim.AllowN(time.Now(), 1_000_000))
		require.False(t, lim.Allow())
	}
}
