package keyed_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// A plan of another kind is in force at once where nobody waits, and at the latest when its own store is full; a
// request that waits keeps its time, and others come after it.
func TestAPlanOfAnotherKind(t *testing.T) {
	monthly := reserve.Must(calendar.Policy(10, calendar.Monthly(time.UTC, 1)))
	hourly := reserve.Must(pace.TokenBucket(reserve.Per(10, time.Hour), 10))
	for name, c := range map[string]struct {
		old, next *reserve.Policy
		after     time.Duration
	}{
		"10 a month to unlimited":         {monthly, reserve.Must(pace.Bursty(math.Inf(1))), 0},
		"10 a month to 100 a minute":      {monthly, reserve.Must(window.Policy(100, time.Minute)), time.Minute},
		"10 a month to a bucket of 100/s": {monthly, reserve.Must(pace.TokenBucket(100, 100)), 10 * time.Millisecond},
		"a bucket to unlimited":           {hourly, reserve.Must(pace.Bursty(math.Inf(1))), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan := c.old
				k := keyed.New(func(string) (*reserve.Policy, error) { return plan, nil })
				for range 20 {
					k.TryAcquire("a", 1)
				}
				plan = c.next
				require.NoError(t, k.Refresh("a"))
				wait, err := k.Peek("a", 1)
				require.NoError(t, err)
				require.Equal(t, c.after, wait)
				time.Sleep(wait)
				require.True(t, k.TryAcquire("a", 1))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		plan := reserve.Must(pace.TokenBucket(reserve.Per(10, time.Hour), 10))
		k := keyed.New(func(string) (*reserve.Policy, error) { return plan, nil })
		require.True(t, k.TryAcquire("a", 10))
		first, err := k.ReserveWithin(context.Background(), "a", 1, reserve.Forever)
		require.NoError(t, err)
		plan = reserve.Must(window.Policy(100, time.Minute))
		require.NoError(t, k.Refresh("a"))
		require.Equal(t, 6*time.Minute, first.Delay())
		wait, err := k.Peek("a", 1)
		require.NoError(t, err)
		require.Equal(t, 6*time.Minute, wait)
	})
}
