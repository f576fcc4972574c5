package rate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What `go fix` writes in the place of Allow and Tokens means the same, for all limits and bursts that there are.
func TestInlined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []Limit{-1, 0, 3, Inf} {
			for _, burst := range []int{-1, 0, 1, 4} {
				lim := NewLimiter(limit, burst)
				for range 6 {
					now := time.Now()
					require.InDelta(t, lim.TokensAt(now), lim.Tokens(), 1e-6, "%v, %d", limit, burst)
					can := limit == Inf || burst > 0 && lim.TokensAt(now) >= 1
					require.Equal(t, can, lim.Allow(), "%v, %d", limit, burst)
					time.Sleep(100 * time.Millisecond)
				}
			}
		}
	})
}
