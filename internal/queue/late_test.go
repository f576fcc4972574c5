package queue_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/queue"
	"github.com/nextfree/pace/reserve"
)

// A hooked clock is moved by hand, runs a hook once before it is read, and its timers never fire.
type hooked struct {
	*clockwork.FakeClock
	hook func()
}

func newHooked() *hooked { return &hooked{FakeClock: clockwork.NewFakeClock()} }

func (c *hooked) Since(t time.Time) time.Duration {
	if hook := c.hook; hook != nil {
		c.hook = nil
		hook()
	}
	return c.FakeClock.Since(t)
}

func (c *hooked) AfterFunc(time.Duration, func()) clockwork.Timer { return c.NewTimer(time.Hour) }

func (c *hooked) evenly(rate float64) *reserve.Limiter {
	return reserve.Must(pace.NewBursty(rate, pace.WithBurst(0), reserve.WithClock(c)))
}

// A place that nobody waits for is granted at its time, however late the queue's timer is: to whoever asks it, and for
// the next request.
func TestTheTimerIsLate(t *testing.T) {
	c := newHooked()
	options := []queue.Option{option(queue.Limit{By: limit.Of(c.evenly(1))})}
	q := queue.New(queue.Settings{Clock: c}, options)
	enter := func(maxWait time.Duration) *queue.Place {
		p := &queue.Place{Permits: 1, Options: options}
		require.NoError(t, q.Enter(t.Context(), p, maxWait))
		return p
	}
	enter(0)
	first, second := enter(reserve.Forever), enter(reserve.Forever)
	require.Equal(t, time.Second, first.Delay())
	c.Advance(time.Second)
	require.Zero(t, first.Delay())
	c.Advance(time.Second)
	require.Equal(t, c.Now(), second.At())
	require.Zero(t, q.Waiting())
	enter(time.Second)
	c.Advance(2 * time.Second)
	enter(0)
}

// While what a place has left is about to be given back, no request is told that it is too late: not by the limit, and
// not by a forecast.
func TestWhileOneLeaves(t *testing.T) {
	c := newHooked()
	options := []queue.Option{option(queue.Limit{By: limit.Of(c.evenly(1))})}
	q := queue.New(queue.Settings{Clock: c}, options)
	places := make([]queue.Place, 4)
	enter := func(i int, maxWait time.Duration) error {
		places[i] = queue.Place{Permits: 1, Options: options}
		return q.Enter(t.Context(), &places[i], maxWait)
	}
	require.NoError(t, enter(0, 0))
	require.NoError(t, enter(1, reserve.Forever))
	during := false
	c.hook = func() { // the queue reads the clock first, and then the limiter
		c.hook = func() {
			during = true
			require.NoError(t, enter(2, time.Second))
			require.NoError(t, enter(3, 2*time.Second))
		}
	}
	places[1].Cancel()
	require.True(t, during)
	require.Equal(t, time.Second, places[2].Delay())
	require.Equal(t, 2*time.Second, places[3].Delay())
}

// Requests that come while another is being bound, and are in time whether or not it has its permits already, are not
// looked at again: with thousands of them that took seconds under the queue's lock.
func TestInTimeWhileAnotherIsBound(t *testing.T) {
	options := []queue.Option{option(queue.Limit{By: limit.Of(evenly(1))}), option(queue.Limit{By: limit.Of(evenly(1))})}
	q := queue.New(queue.Settings{}, options)
	looks := 0
	except := func(int) bool { looks++; return false }
	first := &queue.Place{Permits: 1, Options: options, Renew: func() error {
		for range 10 {
			require.NoError(t, q.Enter(t.Context(), &queue.Place{Permits: 1, Options: options, Except: except}, time.Minute))
		}
		looks = 0
		return nil
	}}
	require.NoError(t, q.Enter(t.Context(), first, reserve.Forever))
	require.Less(t, looks, 20, "by the binding of the next, none by a second forecast")
}
