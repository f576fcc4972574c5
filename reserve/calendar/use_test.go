package calendar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
)

// What is out when a period begins may be counted in either, so both count it.
func TestUseAtTheEdge(t *testing.T) {
	ctx := context.Background()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 23, 23, 59, 59, 0, time.UTC))
	l := reserve.Must(calendar.New(10, calendar.Daily(time.UTC, 0), reserve.WithClock(clock)))
	early, late := reserve.Must(l.Reserve(ctx, 3)), reserve.Must(l.Reserve(ctx, 4))
	limit.Begin(&early)
	limit.Begin(&late)
	next := reserve.Must(l.Reserve(ctx, 5))
	require.Equal(t, 24*time.Hour+time.Second, next.Delay(), "7 of tomorrow's 10 may be used")
	clock.Advance(500 * time.Millisecond)
	limit.End(&early)
	require.Equal(t, 500*time.Millisecond, next.Delay())
	clock.Advance(500 * time.Millisecond)
	require.Zero(t, next.Delay())
	limit.End(&late)
	require.Equal(t, 1., l.Stored())
	clock.Advance(24 * time.Hour)
	require.Equal(t, 10., l.Stored())
}

// A request that moves up when a use ends is woken then. Before, it slept until its limiter looked again.
func TestUseThatEndsWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins at midnight
		l := reserve.Must(calendar.New(1, calendar.Every(time.Hour)))
		r := reserve.Must(l.Reserve(t.Context(), 1))
		limit.Begin(&r)
		begin := time.Now()
		time.AfterFunc(time.Hour-10*time.Second, func() { limit.End(&r) })
		time.Sleep(30 * time.Second)
		_, err := l.Acquire(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, time.Hour, time.Since(begin))
	})
}

// A quota of one that is out at midnight does not wait for ever.
func TestUseOfTheWholeQuota(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 23, 23, 59, 59, 0, time.UTC))
	l := reserve.Must(calendar.New(1, calendar.Daily(time.UTC, 0), reserve.WithClock(clock)))
	r := reserve.Must(l.Reserve(context.Background(), 1))
	limit.Begin(&r)
	next := reserve.Must(l.Reserve(context.Background(), 1))
	require.Equal(t, 24*time.Hour+time.Second, next.Delay())
	r.Cancel()
	require.Zero(t, next.Delay())
}

// A period that opens with a call opens at the server when that arrives: at the latest when it is answered.
func TestUseOpensAPeriod(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(calendar.New(2, calendar.FromFirst(time.Hour), reserve.WithClock(clock)))
	r := reserve.Must(l.Reserve(context.Background(), 2))
	limit.Begin(&r)
	clock.Advance(200 * time.Millisecond)
	limit.End(&r)
	clock.Advance(time.Hour - 1)
	require.False(t, l.TryAcquire(1))
	clock.Advance(1)
	require.True(t, l.TryAcquire(2))
}

// A call that goes out after another was promised the next period, and is still out at its beginning, counts in it all
// the same.
func TestUseBegunAfterThePromise(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0).Truncate(time.Hour))
	l := reserve.Must(calendar.New(2, calendar.Every(time.Hour), reserve.WithClock(clock)))
	out := reserve.Must(l.Reserve(t.Context(), 2))
	waiting := reserve.Must(l.Reserve(t.Context(), 1))
	require.Equal(t, time.Hour, waiting.Delay())
	limit.Begin(&out)
	clock.Advance(time.Hour)
	require.Equal(t, time.Hour, waiting.Delay())
	clock.Advance(time.Minute)
	limit.End(&out)
	require.Equal(t, 59*time.Minute, waiting.Delay())
	clock.Advance(59 * time.Minute)
	require.Zero(t, waiting.Delay())
}

// A call that begins after the period of its grant is counted in the period in which the server sees it.
func TestUseBegunInTheNextPeriod(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 23, 23, 59, 59, 0, time.UTC))
	l := reserve.Must(calendar.New(3, calendar.Daily(time.UTC, 0), reserve.WithClock(clock)))
	r := reserve.Must(l.Reserve(t.Context(), 2))
	clock.Advance(2 * time.Second)
	require.Equal(t, 3., l.Stored())
	limit.Begin(&r)
	require.Equal(t, 1., l.Stored())
	limit.Begin(&r)
	limit.End(&r)
	require.Equal(t, 1., l.Stored())
	clock.Advance(24 * time.Hour)
	require.Equal(t, 3., l.Stored())
}

// A promise that a change of the quota keeps does not know of calls that are out at the beginning of its period.
func TestUseEndsAKeptPromise(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0).Truncate(time.Hour))
	l := reserve.Must(calendar.New(6, calendar.Every(time.Hour), reserve.WithClock(clock)))
	out := reserve.Must(l.Reserve(t.Context(), 6))
	var waiting []*reserve.Reservation
	for range 6 {
		r := reserve.Must(l.Reserve(t.Context(), 1))
		waiting = append(waiting, &r)
	}
	require.NoError(t, l.SetRate(reserve.Per(5, time.Hour)))
	require.Equal(t, time.Hour, waiting[5].Delay())
	limit.Begin(&out)
	clock.Advance(time.Hour)
	require.Equal(t, time.Hour, waiting[0].Delay(), "all that is out may count in this hour")
	clock.Advance(time.Minute)
	limit.End(&out)
	clock.Advance(59 * time.Minute)
	require.Zero(t, waiting[4].Delay())
	require.Equal(t, time.Hour, waiting[5].Delay())
}

// What is in use when a lowered quota's next period begins is used of that period, as if the quota had never been larger.
func TestUseAfterLowered(t *testing.T) {
	run := func(before int) (answers []any) {
		clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0).Truncate(time.Hour))
		l := reserve.Must(calendar.New(before, calendar.Every(time.Hour), reserve.WithClock(clock)))
		require.True(t, l.TryAcquire(before-3))
		out := reserve.Must(l.Reserve(t.Context(), 3))
		limit.Begin(&out)
		require.NoError(t, l.SetRate(reserve.Per(5, time.Hour)))
		clock.Advance(time.Hour)
		answers = append(answers, l.Stored(), l.Snapshot().Level, l.TakeUpTo(5))
		more := reserve.Must(l.Reserve(t.Context(), 7))
		answers = append(answers, more.Delay(), reserve.Must(l.Peek(6)))
		out.Settle(12) // 9 more, behind all
		answers = append(answers, l.Snapshot().Level)
		clock.Advance(time.Hour)
		return append(answers, l.Snapshot().Level, reserve.Must(l.Peek(1)))
	}
	require.Equal(t, []any{2., 2., 2}, run(5)[:3])
	require.Equal(t, run(5), run(10))
}
