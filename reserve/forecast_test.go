package reserve_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
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
}

// used is a limiter with a random history, on a clock of its own.
type used struct {
	*reserve.Limiter
	clock  *clockwork.FakeClock
	random *rand.Rand
	most   int
}

func (k kind) used(t *testing.T, seed uint64) *used {
	u := &used{clock: clockwork.NewFakeClock(), random: rand.New(rand.NewPCG(seed, 1)), most: k.most}
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
				got, err := engine.Behind(u.Limiter, slices.Values(sizes), n)
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
		{"bursty", 8 * s, func() (time.Duration, error) { return engine.Behind(even, slices.Values([]int{3, 5}), 1) }},
		{"window", 2 * s, func() (time.Duration, error) { return engine.Behind(ten, slices.Values([]int{6, 6, 6}), 4) }},
		{"of ones", s, func() (time.Duration, error) { return engine.Behind(ten, ones, 1) }},
		{"behind none", 0, func() (time.Duration, error) { return engine.Behind(ten, nil, 10) }},
	} {
		wait, err := c.wait()
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, wait, c.name)
	}
	_, err := engine.Behind(ten, ones, 11)
	require.Equal(t, &reserve.SizeError{Permits: 11, Max: 10}, err)

	require.Panics(t, func() { _, _ = engine.Behind(ten, func(func(int) bool) { panic("evil") }, 1) })
	require.Equal(t, 10., ten.Stored(), "neither locked nor spoilt")
}

// A reservation that is not counted appears in the counts when it is kept, and otherwise never.
func TestReserveUncounted(t *testing.T) {
	for _, k := range kinds {
		l := k.limiter(clockwork.NewFakeClock())
		counts := func() [3]uint64 {
			snapshot := l.Snapshot()
			return [3]uint64{snapshot.Granted, snapshot.Refused, snapshot.GivenBack}
		}
		reserved := func(n int) *reserve.Reservation {
			r := new(reserve.Reservation)
			require.NoError(t, engine.ReserveUncounted(ctx, l, n, reserve.Forever, r))
			require.Equal(t, n, r.Permits())
			return r
		}
		free := l.NextFree()
		reserved(5).Cancel()
		require.Zero(t, counts(), "%s: given back", k.name)
		require.Equal(t, free, l.NextFree())
		r := reserved(5)
		engine.Count(r)
		engine.Count(r)
		require.Equal(t, [3]uint64{5, 0, 0}, counts(), "%s: kept", k.name)
		r.Settle(2)
		require.Equal(t, [3]uint64{5, 0, 3}, counts(), "%s: settled afterwards", k.name)
		r = reserved(5)
		r.Settle(4)
		engine.Count(r)
		require.Equal(t, [3]uint64{9, 0, 3}, counts(), "%s: settled before", k.name)
		reserved(5).Settle(7)
		require.Equal(t, [3]uint64{16, 0, 3}, counts(), "%s: settled for more", k.name)
		r = new(reserve.Reservation)
		require.Error(t, engine.ReserveUncounted(ctx, l, 0, 0, r))
		require.Equal(t, new(reserve.Reservation), r, "refused: the zero value")
		engine.Count(r)
		require.Equal(t, [3]uint64{16, 0, 3}, counts(), k.name)
	}
}
