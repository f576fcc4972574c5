package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/queue"
	"github.com/nextfree/pace/smooth"
)

type counting struct {
	reserve.Ledger
	reserved *int
}

func (c counting) Reserve(now int64, permits int, latest int64) (smooth.Slot, int64, bool) {
	*c.reserved++
	return c.Ledger.Reserve(now, permits, latest)
}

// While a request waits for one limit it reserves nothing at the others, not even for a moment: another caller's
// TryAcquire would be refused. Before, a new request reserved at all limits, and gave back.
func TestAsksTheOthersOnlyWhenItsTimeHasCome(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		reserved := 0
		shared := pace.Must(reserve.NewPolicy(reserve.Variant{
			Package: "test", Limiter: "a counting limiter",
			Ledger: func(now int64, _ func(int64) time.Time) reserve.Ledger {
				return counting{smooth.New(&smooth.Curve{Rate: 1000, Interval: 1e6, Refill: 1e-6}, now, 0, false), &reserved}
			},
		}, 1000)).Limiter()
		options := []queue.Option{option(queue.Limit{By: shared}, queue.Limit{By: evenly(1)})}
		q := queue.New(queue.Settings{}, options)
		for range 4 {
			l.ask(q, "", &queue.Place{Permits: 1, Options: options}, reserve.Forever)
		}
		for second := range 4 {
			require.Equal(t, 1+second, reserved)
			time.Sleep(time.Second)
			synctest.Wait()
		}
	})
}
