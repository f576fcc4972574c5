package calendar_test

import (
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
)

// A quota that is lowered and raised again within a period forgets nothing that was used, and owes nothing for it.
func TestLoweredAndRaised(t *testing.T) {
	for _, per := range []calendar.Period{calendar.Every(time.Hour), calendar.FromFirst(time.Hour)} {
		clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0).Truncate(time.Hour))
		policy := reserve.Must(calendar.Policy(1, per, reserve.WithClock(clock)))
		l := reserve.Must(calendar.New(3, per, reserve.WithClock(clock)))
		given := reserve.Must(l.Reserve(t.Context(), 1))
		require.True(t, l.TryAcquire(2))
		require.NoError(t, l.SetRate(reserve.Per(1, time.Hour)))
		require.Zero(t, l.Snapshot().Level)
		state, err := l.AppendBinary(nil)
		require.NoError(t, err)

		require.NoError(t, l.SetRate(reserve.Per(3, time.Hour)))
		require.False(t, l.TryAcquire(1))
		given.Cancel()
		require.Equal(t, 1., l.Stored())
		require.NoError(t, l.SetRate(reserve.Per(1, time.Hour)))
		clock.Advance(time.Hour)
		require.Equal(t, 1., l.Stored())
		require.Equal(t, 1., reserve.Must(policy.Restore(state)).Stored())
	}
}

// What a lowered quota has hidden ends with the period: a large request of the next one takes of those after it.
func TestLoweredBefore(t *testing.T) {
	for _, per := range []calendar.Period{calendar.Every(time.Hour), calendar.FromFirst(time.Hour)} {
		clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0).Truncate(time.Hour))
		l := reserve.Must(calendar.New(10, per, reserve.WithClock(clock)))
		require.True(t, l.TryAcquire(10))
		require.NoError(t, l.SetRate(reserve.Per(5, time.Hour)))
		clock.Advance(time.Hour)
		require.Equal(t, 5., l.Snapshot().Level)
		require.True(t, l.TryAcquire(10))
		require.Equal(t, -5., l.Snapshot().Level)
		require.Equal(t, 2*time.Hour, reserve.Must(l.Peek(1)))
	}
}

// What a lowered quota has hidden is known again after a restart, under a higher one.
func TestLoweredSavedAndRaised(t *testing.T) {
	for _, per := range []calendar.Period{calendar.Every(time.Hour), calendar.FromFirst(time.Hour)} {
		clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0).Truncate(time.Hour))
		policy := func(n int) *reserve.Policy {
			return reserve.Must(calendar.Policy(n, per, reserve.WithClock(clock)))
		}
		l := policy(6).Limiter()
		require.True(t, l.TryAcquire(5))
		require.NoError(t, l.SetPolicy(policy(2)))
		state, err := l.AppendBinary(nil)
		require.NoError(t, err)

		same := reserve.Must(policy(2).Restore(state))
		require.Zero(t, same.Snapshot().Level)
		raised := reserve.Must(policy(6).Restore(state))
		require.Equal(t, 1., raised.Stored())
		require.Equal(t, 1., raised.Snapshot().Level)
		clock.Advance(time.Hour)
		require.Equal(t, 2., same.Stored(), "nothing is owed")
		require.Equal(t, 6., raised.Stored())
	}
}

// A pause ends promises that a change of the quota kept: requests of two periods would come in one.
func TestPausedAfterAChange(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0).Truncate(time.Hour))
	l := reserve.Must(calendar.New(6, calendar.Every(time.Hour), reserve.WithClock(clock)))
	require.True(t, l.TryAcquire(6))
	var all []*reserve.Reservation
	for range 12 {
		r := reserve.Must(l.Reserve(t.Context(), 1))
		all = append(all, &r)
	}
	require.NoError(t, l.SetRate(reserve.Per(5, time.Hour)))
	l.PauseUntil(clock.Now().Add(2*time.Hour + 10*time.Minute))
	granted := map[time.Duration]int{}
	for _, r := range all {
		granted[r.Delay().Truncate(time.Hour)]++
	}
	require.Equal(t, map[time.Duration]int{2 * time.Hour: 5, 3 * time.Hour: 5, 4 * time.Hour: 2}, granted)
}

// A pause may end later than int64 nanoseconds reach: a quota by the day looked for its period without end.
func TestPausedBeyondTheYear2262(t *testing.T) {
	for _, per := range []calendar.Period{
		calendar.Every(time.Hour), calendar.FromFirst(time.Hour), calendar.Daily(time.UTC, 0),
		calendar.Weekly(time.UTC, time.Monday, 0), calendar.Monthly(time.UTC, 1),
	} {
		clock := clockwork.NewFakeClockAt(time.Unix(1_790_000_000, 0))
		l := reserve.Must(calendar.New(5, per, reserve.WithClock(clock)))
		l.PauseUntil(time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC))
		waiting := reserve.Must(l.Reserve(t.Context(), 5))
		require.Equal(t, time.Duration(math.MaxInt64), waiting.Delay())
		require.Equal(t, waiting.Delay(), reserve.Must(l.Peek(1)))
		l.Resume()
		require.Zero(t, waiting.Delay())
	}
}

// A debt of many periods is paid when the calendar says, at whatever times of the year the clocks change.
func TestDebtOfManyPeriods(t *testing.T) {
	la, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	begin := time.Date(2026, 3, 1, 4, 30, 0, 0, la) // a Sunday
	for _, c := range []struct {
		per  calendar.Period
		then func(n int) time.Time
	}{
		{calendar.Daily(la, 270*time.Minute), func(n int) time.Time { return begin.AddDate(0, 0, n) }},
		{calendar.Weekly(la, time.Sunday, 270*time.Minute), func(n int) time.Time { return begin.AddDate(0, 0, 7*n) }},
		{calendar.Monthly(la, 1), func(n int) time.Time { return time.Date(2026, 3+time.Month(n), 1, 0, 0, 0, 0, la) }},
	} {
		for _, periods := range []int{1, 2, 17, 1000} {
			clock := clockwork.NewFakeClockAt(begin)
			l := reserve.Must(calendar.New(5, c.per, reserve.WithClock(clock)))
			require.True(t, l.TryAcquire(5*periods))
			require.True(t, c.then(periods).Equal(l.NextFree()), "%v, not %v", l.NextFree(), c.then(periods))
			clock.Advance(c.then(periods).Sub(begin) - 1)
			require.False(t, l.TryAcquire(1))
			clock.Advance(1)
			require.True(t, l.TryAcquire(1))
			require.Equal(t, 4., l.Stored())
		}
		clock := clockwork.NewFakeClockAt(begin)
		l := reserve.Must(calendar.New(5, c.per, reserve.WithClock(clock)))
		require.True(t, l.TryAcquire(math.MaxInt))
		require.Equal(t, time.Duration(math.MaxInt64), reserve.Must(l.Peek(1)))
	}
}
