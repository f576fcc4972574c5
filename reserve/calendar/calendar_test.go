package calendar_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/keyed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func TestBadValues(t *testing.T) {
	day := calendar.Daily(time.UTC, 0)
	for want, f := range map[string]func() (*reserve.Limiter, error){
		"calendar: n is 0; want at least 1 permit": func() (*reserve.Limiter, error) { return calendar.New(0, day) },
		"calendar: per is calendar.Period{}; want a Period of Daily, Weekly, Monthly, Every or FromFirst": func() (*reserve.Limiter, error) {
			return calendar.New(1, calendar.Period{})
		},
		"calendar: loc is <nil>; want a location, time.UTC for one": func() (*reserve.Limiter, error) {
			return calendar.New(1, calendar.Daily(nil, 0))
		},
		"calendar: at is 24h0m0s; want a time of day, 0 to under 24 h": func() (*reserve.Limiter, error) {
			return calendar.New(1, calendar.Daily(time.UTC, 24*time.Hour))
		},
		"calendar: day is 7; want a day of the week": func() (*reserve.Limiter, error) {
			return calendar.New(1, calendar.Weekly(time.UTC, 7, 0))
		},
		"calendar: day is 32; want 1 to 31": func() (*reserve.Limiter, error) { return calendar.New(1, calendar.Monthly(time.UTC, 32)) },
		"calendar: d is 60ns; want at least a microsecond, as in 60*time.Second": func() (*reserve.Limiter, error) {
			return calendar.New(1, calendar.Every(60))
		},
		"calendar: Spread is 0.5; want 1 or more times the even rate": func() (*reserve.Limiter, error) {
			return calendar.New(1, day, calendar.Spread(0.5))
		},
		"calendar: Spread is NaN; want 1 or more times the even rate": func() (*reserve.Limiter, error) {
			return calendar.New(1, day, calendar.Spread(math.NaN()))
		},
		"calendar: WithMargin is 15m1s; want 0 to a quarter of the period": func() (*reserve.Limiter, error) {
			return calendar.New(1, calendar.FromFirst(time.Hour), calendar.WithMargin(15*time.Minute+time.Second))
		},
		"calendar: WithBurst does not apply to a calendar's quota": func() (*reserve.Limiter, error) {
			return calendar.New(1, day, pace.WithBurst(0))
		},
	} {
		l, err := f()
		require.EqualError(t, err, want)
		require.Nil(t, l)
	}
}

// Waiting, giving up, and what a snapshot says, over a midnight in real (fake) time.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight of 2000-01-01, UTC
		l := reserve.Must(calendar.New(3, calendar.Daily(time.UTC, 8*time.Hour)))
		require.True(t, l.TryAcquire(2))
		s := l.Snapshot()
		require.Equal(t, 3.0, s.Capacity)
		require.Equal(t, 1.0, s.Level)
		require.False(t, l.TryAcquire(2))
		first, err := l.Reserve(ctx, 2)
		require.NoError(t, err)
		require.Equal(t, 8*time.Hour, first.Delay())
		second, err := l.Reserve(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, 8*time.Hour, second.Delay())
		_, err = l.ReserveWithin(ctx, 1, 8*time.Hour)
		require.EqualError(t, err, "pace: a wait of 32h0m0s is longer than the longest allowed, 8h0m0s")
		first.Cancel()
		require.Zero(t, second.Delay(), "moves up")
		waited, err := l.Acquire(ctx, 3)
		require.NoError(t, err)
		require.Equal(t, 8*time.Hour, waited)
		require.NoError(t, l.SetPolicy(reserve.Must(calendar.Policy(5, calendar.Monthly(time.UTC, 1)))))
		require.Equal(t, 2.0, l.Stored())
		require.Error(t, l.SetPolicy(reserve.Must(pace.Bursty(1))))
	})
}

// A key that has used nothing of the present period takes no memory.
func TestKeyed(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	policy := reserve.Must(calendar.Policy(10, calendar.Daily(time.UTC, 0), reserve.WithClock(clock)))
	users := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
	for i := range 1000 {
		require.True(t, users.TryAcquire(fmt.Sprint(i), 10))
		require.False(t, users.TryAcquire(fmt.Sprint(i), 1))
	}
	require.Equal(t, 1000, users.Len())
	clock.Advance(12 * time.Hour)
	for range 5000 {
		users.TryAcquire("one", 1)
	}
	require.Less(t, users.Len(), 1000)
	require.True(t, users.TryAcquire("7", 10))
}

func ExampleNew() {
	california, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic(err)
	}
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 20, 0, 0, 0, california)) // for the example
	limiter, err := calendar.New(10_000, calendar.Daily(california, 0), reserve.WithClock(clock))
	if err != nil {
		panic(err)
	}
	fmt.Println(limiter.TryAcquire(9_000))
	upload, err := limiter.Reserve(context.Background(), 1_600)
	if err != nil {
		panic(err)
	}
	fmt.Println(upload.Delay())
	// Output:
	// true
	// 4h0m0s
}

func ExampleSpread() {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)) // for the example
	limiter, err := calendar.New(4_320, calendar.Daily(time.UTC, 0), calendar.Spread(1), reserve.WithClock(clock))
	if err != nil {
		panic(err)
	}
	for range 3 { // half of the day is left, for all 4,320
		call, err := limiter.Reserve(context.Background(), 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(call.Delay())
	}
	// Output:
	// 0s
	// 10s
	// 20s
}
