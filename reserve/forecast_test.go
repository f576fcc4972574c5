package reserve_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// A kind makes limiters of one variant.
type kind struct {
	name    string
	most    int // permits that one request may ask for
	limiter func(clock clockwork.Clock) *reserve.Limiter
}

var kinds = []kind{
	{"bursty", 30, func(c clockwork.Clock) *reserve.Limiter {
		return reserve.Must(pace.NewBursty(7.3, reserve.WithClock(c), reserve.WithStored(5)))
	}},
	{"no burst", 30, func(c clockwork.Clock) *reserve.Limiter {
		return reserve.Must(pace.NewBursty(10, reserve.WithClock(c), pace.WithBurst(0)))
	}},
	{"bucket", 30, func(c clockwork.Clock) *reserve.Limiter {
		return reserve.Must(pace.NewTokenBucket(10, 20, reserve.WithClock(c)))
	}},
	{"warm-up", 30, func(c clockwork.Clock) *reserve.Limiter {
		return reserve.Must(warmup.New(4, 8*s, reserve.WithClock(c)))
	}},
	{"window", 10, func(c clockwork.Clock) *reserve.Limiter {
		return reserve.Must(window.New(10, time.Second, reserve.WithClock(c)))
	}},
	{"no limit", 30, func(c clockwork.Clock) *reserve.Limiter {
		return reserve.Must(pace.NewBursty(math.Inf(1), reserve.WithClock(c)))
	}},
	{"quota", 30, func(c clockwork.Clock) *reserve.Limiter {
		return reserve.Must(calendar.New(20, calendar.Every(s), reserve.WithClock(c)))
	}},
	{"from first", 30, func(c clockwork.Clock) *reserve.Limiter {
		return reserve.Must(calendar.New(20, calendar.FromFirst(s), reserve.WithClock(c)))
	}},
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// used is a limiter with a random history, on a clock of its own.
type used struct {
	*reserve.Limiter
	clock  *clockwork.FakeClock
	random *rand.Rand
	most   int
}

func (k kind) used(t *testing.T, seed uint64) *used {
	u := &used{clock: clockwork.NewFakeClockAt(noon), random: rand.New(rand.NewPCG(seed, 1)), most: k.most}
	u.Limiter = k.limiter(u.clock)
	for range u.random.IntN(20) {
		switch u.random.IntN(6) {
		case 0:
			u.clock.Advance(time.Duration(u.random.IntN(2000)) * ms)
		case 1:
			u.PauseUntil(u.clock.Now().Add(time.Duration(u.random.IntN(1000)) * ms))
		case 2:
			u.TryAcquire(1 + u.random.IntN(u.most))
		case 3:
			r, err := u.Reserve(ctx, 1+u.random.IntN(u.most))
			require.NoError(t, err)
			r.Settle(u.random.IntN(u.most))
		default:
			_, err := u.Reserve(ctx, 1+u.random.IntN(u.most))
			require.NoError(t, err)
		}
	}
	return u
}

// Behind foretells what the same requests get when they are made, and changes nothing.
func TestBehind(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			for seed := range uint64(500) {
				u := k.used(t, seed)
				sizes := make([]int, u.random.IntN(12))
				for i := range sizes {
					sizes[i] = 1 + u.random.IntN(k.most+5)
				}
				n := 1 + u.random.IntN(k.most)
				before := u.Snapshot()
				got, err := engineOf(u.Limiter).Behind(slices.Values(sizes), n)
				require.NoError(t, err)
				require.Equal(t, before, u.Snapshot())
				for _, size := range sizes {
					r, err := u.Reserve(ctx, min(size, k.most))
					require.NoError(t, err)
					r.Settle(size)
				}
				r, err := u.Reserve(ctx, n)
				require.NoError(t, err)
				require.InDelta(t, r.Delay(), got, 1, "seed %d: %v, %d", seed, sizes, n) // sums are rounded once
			}
		})
	}
}

func TestBehindWorked(t *testing.T) {
	clock := clockwork.NewFakeClock()
	even := reserve.Must(pace.NewBursty(1, pace.WithBurst(0), reserve.WithClock(clock)))
	ten := reserve.Must(window.New(10, s, reserve.WithClock(clock)))
	ones := slices.Values(slices.Repeat([]int{1}, 18))
	for _, c := range []struct {
		name string
		want time.Duration
		wait func() (time.Duration, error)
	}{
		{"bursty", 8 * s, func() (time.Duration, error) { return engineOf(even).Behind(slices.Values([]int{3, 5}), 1) }},
		{"window", 2 * s, func() (time.Duration, error) { return engineOf(ten).Behind(slices.Values([]int{6, 6, 6}), 4) }},
		{"of ones", s, func() (time.Duration, error) { return engineOf(ten).Behind(ones, 1) }},
		{"behind none", 0, func() (time.Duration, error) { return engineOf(ten).Behind(nil, 10) }},
	} {
		wait, err := c.wait()
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, wait, c.name)
	}
	_, err := engineOf(ten).Behind(ones, 11)
	require.Equal(t, &reserve.SizeError{Permits: 11, Max: 10}, err)

	require.Panics(t, func() { _, _ = engineOf(ten).Behind(func(func(int) bool) { panic("evil") }, 1) })
	require.Equal(t, 10., ten.Stored(), "neither locked nor spoilt")
}

// Forecast is when the last of n goes, and Peek how long one waits; neither changes anything.
func TestForecastAndPeek(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			for seed := range uint64(500) {
				u := k.used(t, seed)
				before, n, ones := u.Snapshot(), 1+u.random.IntN(k.most), 1+u.random.IntN(50)
				wait, err := u.Peek(n)
				require.NoError(t, err)
				last := u.Forecast(ones)
				require.Equal(t, u.NextFree(), u.Forecast(0))
				require.Equal(t, before, u.Snapshot())

				r, err := u.Reserve(ctx, n)
				require.NoError(t, err)
				require.Equal(t, r.Delay(), wait, "seed %d: Peek(%d)", seed, n)
				r.Cancel()
				other := k.used(t, seed)
				for range ones - 1 {
					_, err = other.Reserve(ctx, 1)
					require.NoError(t, err)
				}
				r, err = other.Reserve(ctx, 1)
				require.NoError(t, err)
				require.InDelta(t, r.Delay(), last.Sub(u.clock.Now()), 1, "seed %d: Forecast(%d)", seed, ones)
			}
		})
	}
	l := kinds[4].limiter(clockwork.NewFakeClock())
	_, err := l.Peek(11)
	require.Equal(t, &reserve.SizeError{Permits: 11, Max: 10}, err)
	_, err = l.Peek(0)
	var bad *reserve.ValueError
	require.ErrorAs(t, err, &bad)
	require.True(t, l.Forecast(math.MaxInt).After(time.Now().AddDate(200, 0, 0)), "saturated")
}

func TestForecastWorked(t *testing.T) {
	clock := clockwork.NewFakeClockAt(noon)
	l := reserve.Must(pace.NewBursty(10, reserve.WithStored(10), reserve.WithClock(clock)))
	require.Equal(t, 10*s, l.Forecast(111).Sub(clock.Now()))
	w := reserve.Must(window.New(10, s, reserve.WithClock(clock)))
	require.Equal(t, 9*s, w.Forecast(100).Sub(clock.Now()))
	require.Equal(t, 10*s, w.Forecast(101).Sub(clock.Now()))
	day := reserve.Must(calendar.New(10, calendar.Every(time.Hour), reserve.WithClock(clock)))
	even := reserve.Must(calendar.New(10, calendar.Every(time.Hour), calendar.Spread(1), reserve.WithClock(clock)))
	require.Equal(t, 7, day.TakeUpTo(7))
	require.WithinDuration(t, noon, day.Forecast(3), 0)
	require.WithinDuration(t, noon.Add(time.Hour), day.Forecast(4), 0)
	require.WithinDuration(t, noon.Add(time.Hour), day.Forecast(13), 0)
	require.WithinDuration(t, noon.Add(2*time.Hour), day.Forecast(14), 0)
	require.Equal(t, 3, day.TakeUpTo(math.MaxInt))
	clock.Advance(time.Hour)
	require.WithinDuration(t, noon.Add(time.Hour+54*time.Minute), even.Forecast(10), 0)
	require.WithinDuration(t, noon.Add(2*time.Hour+6*time.Minute), even.Forecast(12), 0)
	huge := reserve.Must(calendar.New(math.MaxInt, calendar.Every(time.Hour), reserve.WithClock(clock)))
	require.Equal(t, math.MaxInt-1, huge.TakeUpTo(math.MaxInt-1), "not one by one")
}

// TakeUpTo takes what TryAcquire(1) gets until it fails, and leaves the limiter as that does.
func TestTakeUpTo(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			for seed := range uint64(500) {
				one, other := k.used(t, seed), k.used(t, seed)
				n := one.random.IntN(50)
				for range one.random.IntN(3) { // so that some have all stored, and no debt
					one.clock.Advance(3 * s)
					other.clock.Advance(3 * s)
				}
				want := 0
				for want < n && one.TryAcquire(1) {
					want++
				}
				require.Equal(t, want, other.TakeUpTo(n), "seed %d: %d", seed, n)
				require.InDelta(t, one.Stored(), other.Stored(), 1e-9)
				require.Equal(t, one.NextFree().Sub(one.clock.Now()), other.NextFree().Sub(other.clock.Now()))
				require.Equal(t, one.Snapshot().Granted, other.Snapshot().Granted)
			}
		})
	}
}

// As many as there are, which are very many, take no time.
func TestTakeUpToOfAll(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	inf := math.Inf(1)
	for name, l := range map[string]*reserve.Limiter{
		"window without a limit": reserve.Must(func() (*reserve.Limiter, error) {
			l, err := window.New(7, s, clock)
			return l, errors.Join(err, l.SetRate(inf))
		}()),
		"bursty without a limit":  reserve.Must(pace.NewBursty(inf, clock)),
		"warm-up without a limit": reserve.Must(warmup.New(inf, s, clock)),
	} {
		require.Equal(t, math.MaxInt, l.TakeUpTo(math.MaxInt), name)
	}
	fast := reserve.Must(warmup.New(1e17, s, clock))
	require.Less(t, fast.TakeUpTo(math.MaxInt), 1_000_000_000)
	require.Positive(t, reserve.Must(warmup.New(1e300, s, clock)).TakeUpTo(math.MaxInt))
}

func TestTakeUpToWorked(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	stored := reserve.WithStored(5)
	for _, c := range []struct {
		name string
		l    *reserve.Limiter
		want int
	}{
		{"paid later", reserve.Must(pace.NewBursty(10, clock, stored)), 6},
		{"upfront", reserve.Must(pace.NewBursty(10, clock, stored, reserve.PayUpfront())), 5},
		{"nothing stored, upfront", reserve.Must(pace.NewBursty(10, clock, reserve.PayUpfront())), 0},
		{"three permits a nanosecond", reserve.Must(pace.NewBursty(3e9, clock, pace.WithBurst(0))), 1}, // costs are rounded up
		{"three permits a nanosecond, upfront", reserve.Must(pace.NewTokenBucket(3e9, 4, clock)), 4},
		{"warm-up", reserve.Must(warmup.New(10, s, clock)), 1},
		{"window", reserve.Must(window.New(7, s, clock)), 7},
		{"no limit", reserve.Must(pace.NewBursty(math.Inf(1), clock)), 100},
	} {
		require.Equal(t, c.want, c.l.TakeUpTo(100), c.name)
		require.Zero(t, c.l.TakeUpTo(0), c.name)
		require.Zero(t, c.l.TakeUpTo(-1), c.name)
	}
	require.Equal(t, math.MaxInt, reserve.Must(pace.NewBursty(math.Inf(1), clock)).TakeUpTo(math.MaxInt))
	require.Zero(t, testing.AllocsPerRun(10, func() { reserve.Must(pace.NewBursty(1)) })-
		testing.AllocsPerRun(10, func() { reserve.Must(pace.NewBursty(1)).TakeUpTo(9) }))
}

// What All reserves from one limiter comes back when another refuses.
func TestRefusedByAll(t *testing.T) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	free, full := reserve.Must(pace.NewBursty(10, clock)), reserve.Must(window.New(2, s, clock))
	both := reserve.All(free, full)
	_, err := both.ReserveWithin(ctx, 2, 0)
	require.NoError(t, err)
	require.Equal(t, uint64(2), free.Snapshot().Granted)
	for range 10 {
		_, err = both.ReserveWithin(ctx, 1, 500*ms)
		require.Error(t, err)
	}
	require.Equal(t, uint64(2+10), free.Snapshot().Granted)
	require.Equal(t, uint64(10), free.Snapshot().GivenBack)
	require.Equal(t, uint64(10), full.Snapshot().Refused)
}
