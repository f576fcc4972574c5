package reserve_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// What a limiter is like: with permits stored, in debt, with callers that wait, paused.
func TestSnapshotOfEachState(t *testing.T) {
	clock := clockwork.NewFakeClock()
	own := reserve.WithClock(clock)
	for _, c := range []struct {
		name  string
		l     *reserve.Limiter
		takes []int
		pause time.Duration
		want  reserve.Snapshot
	}{
		{"stored", reserve.Must(pace.NewBursty(10, own, reserve.WithStored(10))), []int{6}, 0,
			reserve.Snapshot{Rate: 10, Capacity: 10, Level: 4, Granted: 6}},
		{"empty", reserve.Must(pace.NewBursty(10, own)), nil, 0, reserve.Snapshot{Rate: 10, Capacity: 10}},
		{"in debt", reserve.Must(pace.NewBursty(10, own)), []int{6}, 0,
			reserve.Snapshot{Rate: 10, Capacity: 10, Level: -6, Wait: 600 * ms, Granted: 6}},
		{"stored, then in debt", reserve.Must(pace.NewBursty(10, own, reserve.WithStored(10))), []int{6, 9}, 0,
			reserve.Snapshot{Rate: 10, Capacity: 10, Level: -5, Wait: 500 * ms, Granted: 15}},
		{"some wait", reserve.Must(pace.NewBursty(10, own)), []int{6, 3, 1}, 0,
			reserve.Snapshot{Rate: 10, Capacity: 10, Level: -10, Wait: s, Granted: 10}},
		{"token bucket", reserve.Must(pace.NewTokenBucket(10, 5, own)), []int{3}, 0,
			reserve.Snapshot{Rate: 10, Capacity: 5, Level: 2, Granted: 3}},
		{"some wait at a token bucket", reserve.Must(pace.NewTokenBucket(10, 5, own)), []int{3, 4}, 0,
			reserve.Snapshot{Rate: 10, Capacity: 5, Level: -2, Wait: 300 * ms, Granted: 7}},
		{"paused", reserve.Must(pace.NewBursty(10, own, reserve.WithStored(10))), []int{6}, 5 * s,
			reserve.Snapshot{Rate: 10, Capacity: 10, Level: 4, Wait: 5 * s, PausedUntil: clock.Now().Add(5 * s), Granted: 6}},
		{"paused in debt", reserve.Must(pace.NewBursty(10, own)), []int{1}, 5 * s,
			reserve.Snapshot{Rate: 10, Capacity: 10, Level: -1, Wait: 5100 * ms, PausedUntil: clock.Now().Add(5 * s), Granted: 1}},
		{"cold", reserve.Must(warmup.New(2, 4*s, own)), nil, 0, reserve.Snapshot{Rate: 2, Capacity: 8, Level: 8}},
		{"warming up", reserve.Must(warmup.New(2, 4*s, own)), []int{1}, 0, // 1.375 s, at 2/s
			reserve.Snapshot{Rate: 2, Capacity: 8, Level: -2.75, Wait: 1375 * ms, Granted: 1}},
		{"window", reserve.Must(window.New(5, time.Minute, own)), []int{2}, 0,
			reserve.Snapshot{Rate: 5. / 60, Capacity: 5, Level: 3, Granted: 2}},
		{"full window", reserve.Must(window.New(5, time.Minute, own)), []int{5}, 0,
			reserve.Snapshot{Rate: 5. / 60, Capacity: 5, Wait: time.Minute, Granted: 5}},
		{"some wait at a window", reserve.Must(window.New(5, time.Minute, own)), []int{3, 4}, 0,
			reserve.Snapshot{Rate: 5. / 60, Capacity: 5, Level: -2, Wait: time.Minute, Granted: 7}},
		{"paused window", reserve.Must(window.New(5, time.Minute, own)), []int{2}, 5 * s,
			reserve.Snapshot{Rate: 5. / 60, Capacity: 5, Level: 3, Wait: 5 * s, PausedUntil: clock.Now().Add(5 * s), Granted: 2}},
		{"no limit", reserve.Must(pace.NewBursty(math.Inf(1), own)), []int{5}, 0,
			reserve.Snapshot{Rate: math.Inf(1), Capacity: math.Inf(1), Level: math.Inf(1), Granted: 5}},
	} {
		for _, n := range c.takes {
			_, err := c.l.Reserve(context.Background(), n)
			require.NoError(t, err, c.name)
		}
		c.l.PauseUntil(clock.Now().Add(c.pause))
		require.Equal(t, c.want, c.l.Snapshot(), c.name)
		require.Equal(t, c.want, c.l.Snapshot(), "%s: it takes nothing", c.name)
	}
}

// Permits leave a window one by one, also while others wait.
func TestSnapshotOfAWindowInTime(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := reserve.Must(window.New(3, s, reserve.WithClock(clock)))
	require.True(t, l.TryAcquire(2))
	clock.Advance(400 * ms)
	_, err := l.Reserve(ctx, 3) // at 1 s, when the window is empty
	require.NoError(t, err)
	require.Equal(t, -2., l.Snapshot().Level)
	clock.Advance(600 * ms)
	require.Equal(t, 0., l.Snapshot().Level)
	clock.Advance(s)
	require.Equal(t, 3., l.Snapshot().Level)
	require.NoError(t, l.SetRate(30))
	l.TryAcquire(2)
	clock.Advance(100 * ms)
	require.Equal(t, 3., l.Snapshot().Level)
	require.NoError(t, l.SetRate(3))
	require.Equal(t, 3., l.Snapshot().Level, "what has left the window does not come back into a longer one")
}

func TestSnapshotAfterAChangeOfRate(t *testing.T) {
	l := reserve.Must(pace.NewBursty(10, reserve.WithClock(clockwork.NewFakeClock())))
	l.TryAcquire(6)
	require.NoError(t, l.SetRate(20))
	got := l.Snapshot()
	require.Equal(t, []any{20., 20., -12., 600 * ms}, []any{got.Rate, got.Capacity, got.Level, got.Wait})
	require.NoError(t, l.Retime(10))
	got = l.Snapshot()
	require.Equal(t, []any{10., 10., -12., 1200 * ms}, []any{got.Rate, got.Capacity, got.Level, got.Wait})
}

// Refusals are counted however they come about; the ones that one word decides from the first Snapshot on.
func TestSnapshotCounts(t *testing.T) {
	b := limitertest.Bursty(t, 10, reserve.WithMaxWait(2*s))
	count := func() [3]uint64 {
		got := b.Snapshot()
		return [3]uint64{got.Granted, got.Refused, got.GivenBack}
	}
	require.Equal(t, [3]uint64{}, count())
	require.True(t, b.TryAcquire(5))
	for range 3 {
		require.False(t, b.TryAcquire(2))
	}
	require.Equal(t, [3]uint64{5, 6, 0}, count())
	require.False(t, b.TryAcquire(0))
	require.False(t, b.TryAcquire(-1))
	_, err := b.Reserve(ctx, -1)
	require.ErrorAs(t, err, new(*reserve.ValueError))
	require.Equal(t, [3]uint64{5, 6, 0}, count(), "what makes no sense does not count")

	_, err = b.ReserveWithin(ctx, 3, 499*ms)
	require.ErrorAs(t, err, new(*reserve.WaitError))
	require.Equal(t, [3]uint64{5, 9, 0}, count())
	soon, cancel := context.WithDeadline(ctx, b.Now().Add(499*ms))
	defer cancel()
	_, err = b.Acquire(soon, 4)
	require.ErrorAs(t, err, new(*reserve.WaitError))
	require.Equal(t, [3]uint64{5, 13, 0}, count())

	r, err := b.Reserve(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, [3]uint64{15, 13, 0}, count())
	r.Settle(3)
	r.Cancel()
	require.Equal(t, [3]uint64{15, 13, 7}, count())
	more, err := b.Reserve(ctx, 1)
	require.NoError(t, err)
	more.Settle(3)
	require.Equal(t, [3]uint64{18, 13, 7}, count(), "what was used beyond it counts as granted")
	whole, err := b.Reserve(ctx, 2)
	require.NoError(t, err)
	whole.Cancel()
	require.Equal(t, [3]uint64{20, 13, 9}, count())

	b.Advance(10 * s)
	require.True(t, b.TryAcquire(1))
	require.True(t, b.Allow())
	_, err = b.Acquire(ctx, 2)
	require.NoError(t, err)
	require.Equal(t, [3]uint64{24, 13, 9}, count())
	require.True(t, b.TryAcquire(100))
	require.False(t, b.Allow())
	require.False(t, b.Allow())
	b.Advance(20 * s)
	require.True(t, b.Allow(), "the word is of no use any more")
	require.Equal(t, [3]uint64{125, 15, 9}, count())
}

func TestSnapshotCountsWhatIsTooLarge(t *testing.T) {
	l := reserve.Must(window.New(5, time.Minute))
	_, err := l.Reserve(ctx, 6)
	require.ErrorAs(t, err, new(*reserve.SizeError))
	require.False(t, l.TryAcquire(7))
	require.Equal(t, uint64(13), l.Snapshot().Refused)
}

// Before the first Snapshot a refusal without the lock is not counted.
func TestSnapshotBeforeTheFirst(t *testing.T) {
	l := reserve.Must(pace.NewBursty(10, reserve.WithClock(clockwork.NewFakeClock())))
	require.True(t, l.Allow())
	for range 5 {
		require.False(t, l.Allow())
	}
	require.Equal(t, uint64(1), l.Snapshot().Refused, "the one that found the time")
	for range 5 {
		require.False(t, l.Allow())
	}
	require.Equal(t, uint64(6), l.Snapshot().Refused)
}

// Callers that wait are counted while they do, and their waits when they are over: of callers that go, and of callers
// that give up.
func TestSnapshotOfThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := reserve.Must(pace.NewBursty(10, pace.WithBurst(0)))
		require.True(t, l.TryAcquire(10))
		go func() { _, _ = l.Acquire(t.Context(), 5) }() // goes at 1 s
		synctest.Wait()
		r, err := l.Reserve(t.Context(), 1) // would go at 1.5 s
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = r.Wait(ctx) }()
		synctest.Wait()
		got := l.Snapshot()
		require.Equal(t, 2, got.Waiting)
		require.Zero(t, got.Waited)

		time.Sleep(200 * ms)
		cancel()
		synctest.Wait()
		got = l.Snapshot()
		require.Equal(t, 1, got.Waiting)
		require.Equal(t, 200*ms, got.Waited)
		require.Equal(t, uint64(1), got.GivenBack)

		time.Sleep(s)
		synctest.Wait()
		got = l.Snapshot()
		require.Zero(t, got.Waiting)
		require.Equal(t, 1200*ms, got.Waited)
		require.Equal(t, uint64(16), got.Granted)
	})
}
