package reserve_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/internal/variant"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

// A bare ledger has what every ledger must have, and nothing else.
type bare struct{ engine.Ledger }

func bareLimiter(clock clockwork.Clock) *reserve.Limiter {
	return pace.Must(variant.Variant{
		Package: "bare", Limiter: "a bare limiter",
		Ledger: func(now int64, _ func(int64) time.Time) engine.Ledger {
			return bare{smooth.New(&smooth.Curve{Rate: 10, Interval: 1e8, Refill: 1e-8}, now, 0, false)}
		},
	}.Policy(10, reserve.WithClock(clock))).Limiter()
}

// What a ledger can't do is nothing, or an error: a server's refusal is a pause, what a server says is not for it, and
// it can't be saved.
func TestABareLedger(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := bareLimiter(clock)
	require.True(t, l.TryAcquire(5))
	now := clock.Now()
	engineOf(l).Said(0, now.Add(time.Hour))
	require.Equal(t, 500*ms, reserve.Must(l.Peek(1)))
	engineOf(l).Stop(now.Add(time.Second))
	require.Equal(t, 1500*ms, reserve.Must(l.Peek(1)))
	_, err := l.AppendBinary(nil)
	require.EqualError(t, err, "pace: a bare limiter has no state that can be saved")
	r, err := l.Reserve(ctx, 1)
	require.NoError(t, err)
	limit.Begin(&r)
	limit.End(&r)
	require.Equal(t, 1500*ms, r.Delay())
}

// A listening ledger takes what a server says for its rate.
type listening struct{ engine.Ledger }

func (l listening) Stop(now, until int64) bool            { return l.Pause(now, until) }
func (l listening) Said(now int64, left float64, _ int64) { l.Retime(now, left) }

// What a server says moves times, also for callers that were refused until another time.
func TestSaid(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := pace.Must(variant.Variant{
		Package: "listening", Limiter: "a listening limiter",
		Ledger: func(now int64, _ func(int64) time.Time) engine.Ledger {
			return listening{smooth.New(steady(10), now, 0, false)}
		},
	}.Policy(10, reserve.WithClock(clock))).Limiter()
	require.True(t, l.TryAcquire(5))
	require.False(t, l.TryAcquire(1))
	var told []bool
	watcher := &engine.Watcher{Tell: func(later bool) { told = append(told, later) }}
	engineOf(l).Watch(watcher)
	engineOf(l).Said(1000, clock.Now())
	clock.Advance(5 * ms)
	require.True(t, l.TryAcquire(1))
	require.Equal(t, []bool{true}, told)
	runtime.KeepAlive(watcher)
}

func steady(rate float64) *smooth.Curve {
	return &smooth.Curve{Rate: rate, Interval: smooth.Interval(rate), Refill: rate / 1e9, AtRate: steady}
}
