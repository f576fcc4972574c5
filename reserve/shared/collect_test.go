package shared_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// Paid upfront, the newest request is cancelled while it collects: it leaves what it would leave alone.
func TestCancelWhileCollecting(t *testing.T) {
	eachStore(t, func(t *testing.T, c place) {
		for _, tt := range []struct {
			first, permits int
			after          time.Duration
			want           float64
		}{
			{0, 5, 450 * time.Millisecond, 4.5},
			{0, 10, 450 * time.Millisecond, 4.5},
			{0, 10, 900 * time.Millisecond, 9},
			{0, 20, 450 * time.Millisecond, 4.5},
			{0, 20, 1500 * time.Millisecond, 10},
			{4, 10, 850 * time.Millisecond, 4.5}, // another one was granted after 400 ms
			{8, 10, 850 * time.Millisecond, 0.5},
		} {
			name := fmt.Sprint(tt)
			g := newGroup(t, c, name, 1, reserve.Must(pace.Bursty(10, pace.WithCapacity(10), reserve.PayUpfront())))
			g.sell(10)
			if tt.first > 0 {
				g.sell(tt.first)
			}
			newest := g.sell(tt.permits)
			g.sleep(tt.after)
			newest.Promise().Cancel()
			require.InDelta(t, tt.want, g.stored(), 1e-6, name)
		}
	})
}
