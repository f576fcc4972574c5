package queue_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace/internal/limit"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/variant"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

type counting struct {
	engine.Ledger
	reserved *atomic.Int64
}

func (c counting) Reserve(now int64, permits int, latest int64) (smooth.Slot, int64, bool) {
	c.reserved.Add(1)
	return c.Ledger.Reserve(now, permits, latest)
}

// While a request waits for one limit it reserves nothing at the others, not even for a moment: another caller's
// TryAcquire would be refused. Before, a new request reserved at all limits, and gave back.
func TestAsksTheOthersOnlyWhenItsTimeHasCome(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		var reserved atomic.Int64
		shared := pace.Must(variant.Variant{
			Package: "test", Limiter: "a counting limiter",
			Ledger: func(now int64, _ func(int64) time.Time) engine.Ledger {
				return counting{smooth.New(&smooth.Curve{Rate: 1000, Interval: 1e6, Refill: 1e-6}, now, 0, false), &reserved}
			},
		}.Policy(1000)).Limiter()
		options := []queue.Option{option(queue.Limit{By: limit.Of(shared)}, queue.Limit{By: limit.Of(evenly(1))})}
		q := queue.New(queue.Settings{}, options)
		for range 4 {
			l.ask(q, "", &queue.Place{Permits: 1, Options: options}, reserve.Forever)
		}
		for second := range 4 {
			require.Equal(t, int64(1+second), reserved.Load())
			time.Sleep(time.Second)
			synctest.Wait()
		}
	})
}

// Two busy limits may never have room at the same time, so after four rounds a request keeps the permits of both. They
// count from when it goes: before, another caller had the first limit's next permit at the same moment.
func TestPermitsKeptForLongCountFromTheGrant(t *testing.T) {
	bubble(t, func(t *testing.T, l *log) {
		a, b := evenly(5), evenly(1)
		options := []queue.Option{option(queue.Limit{By: limit.Of(a)}, queue.Limit{By: limit.Of(b)})}
		q := queue.New(queue.Settings{}, options)
		at := func(ms int) {
			time.Sleep(time.Until(l.begin.Add(time.Duration(ms) * time.Millisecond)))
			synctest.Wait()
		}
		require.True(t, b.TryAcquire(1))
		l.ask(q, "", &queue.Place{Permits: 1, Options: options}, reserve.Forever)
		for _, taken := range []struct {
			ms int
			by *reserve.Limiter
		}{{950, a}, {1100, b}, {2050, a}, {2200, b}} {
			at(taken.ms)
			require.True(t, taken.by.TryAcquire(1))
		}
		at(3200)
		require.Equal(t, []string{" 3.2s"}, l.went)
		require.False(t, a.TryAcquire(1))
		at(3400)
		require.True(t, a.TryAcquire(1))
	})
}
