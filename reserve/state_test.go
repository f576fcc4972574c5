package reserve_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/sealed"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

// policies are policies of every variant, on a clock.
func policies(clock clockwork.Clock) map[string]*reserve.Policy {
	on := reserve.WithClock(clock)
	return map[string]*reserve.Policy{
		"bursty":     pace.Must(pace.Bursty(5, on)),
		"strict":     pace.Must(pace.Bursty(5, pace.WithBurst(0), on)),
		"bucket":     pace.Must(pace.TokenBucket(3, 10, on)),
		"thirds":     pace.Must(pace.Bursty(3, pace.WithCapacity(4), on)),
		"warm-up":    pace.Must(warmup.Policy(2, 4*time.Second, on)),
		"window":     pace.Must(window.Policy(4, time.Second, on)),
		"day":        pace.Must(calendar.Policy(20, calendar.Daily(time.UTC, 0), on)),
		"spread":     pace.Must(calendar.Policy(20, calendar.Every(10*time.Second), calendar.Spread(1), on)),
		"from first": pace.Must(calendar.Policy(4, calendar.FromFirst(3*time.Second), on)),
		"no limit":   pace.Must(pace.Bursty(math.Inf(1), on)),
	}
}

// Saved and restored, at once or later, a limiter promises what one promises that was kept.
func TestRestored(t *testing.T) {
	ctx := context.Background()
	for run := range uint64(300) {
		random := rand.New(rand.NewPCG(run, 3))
		clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 23, 59, 50, 0, time.UTC))
		for name, policy := range policies(clock) {
			kept := policy.Limiter()
			for range random.IntN(12) {
				switch random.IntN(5) {
				case 0:
					kept.PauseUntil(clock.Now().Add(time.Duration(random.IntN(2)) * time.Second))
				case 1:
					clock.Advance(time.Duration(random.Int64N(int64(2 * time.Second))))
				case 2:
					r, err := kept.Reserve(ctx, 1+random.IntN(4))
					require.NoError(t, err)
					clock.Advance(r.Delay()) // no request waits when it is saved
				default:
					kept.TryAcquire(1 + random.IntN(3))
				}
			}
			state, err := kept.AppendBinary([]byte("before"))
			require.NoError(t, err)
			require.Equal(t, "before", string(state[:6]))
			clock.Advance(time.Duration(random.IntN(3)) * time.Duration(random.Int64N(int64(4*time.Second))))
			restored, err := policies(clock)[name].Restore(state[6:]) // of another process, so of another epoch
			require.NoError(t, err)
			for range 5 {
				require.InDelta(t, kept.Stored(), restored.Stored(), 1e-6, "run %d: %s", run, name)
				n := 1 + random.IntN(3)
				a, err := kept.Reserve(ctx, n)
				require.NoError(t, err)
				b, err := restored.Reserve(ctx, n)
				require.NoError(t, err)
				require.InDelta(t, a.Delay(), b.Delay(), 1, "run %d: %s", run, name)
				clock.Advance(time.Duration(random.Int64N(int64(time.Second))))
			}
		}
	}
}

// Requests that wait are not saved: the state is the one after they have all given up.
func TestSavedWithoutWaiting(t *testing.T) {
	ctx := context.Background()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	for name, policy := range policies(clock) {
		for _, n := range []int{1, 3} {
			l := policy.Limiter()
			var all []*reserve.Reservation
			for range 40 / n {
				r, err := l.Reserve(ctx, n)
				require.NoError(t, err)
				all = append(all, &r)
			}
			clock.Advance(70 * time.Millisecond)
			state, err := l.AppendBinary(nil)
			require.NoError(t, err)
			for _, r := range all {
				if r.Delay() > 0 {
					r.Cancel()
				}
			}
			restored, err := policy.Restore(state)
			require.NoError(t, err)
			if name == "warm-up" { // its waiting requests have taken their stored permits: it is warmer
				require.Less(t, restored.Stored(), l.Stored())
				continue
			}
			require.InDelta(t, l.Stored(), restored.Stored(), 1e-6, name)
			require.InDelta(t, 0, l.NextFree().Sub(restored.NextFree()), 1, name)
		}
	}
}

// What was settled at more is used, though it is charged behind requests that wait: it is saved as if these had left.
func TestSavedCharges(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(34, seed))
		clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
		for name, policy := range policies(clock) {
			if name == "warm-up" || name == "no limit" {
				continue // its waiting requests have taken their stored permits; nothing is owed
			}
			l := policy.Limiter()
			var all []*reserve.Reservation
			for range 12 {
				clock.Advance(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
				r, err := l.Reserve(ctx, 1+random.IntN(4))
				require.NoError(t, err)
				all = append(all, &r)
				if gone := all[random.IntN(len(all))]; gone.Delay() == 0 {
					gone.Settle(4 + random.IntN(20))
				}
			}
			state, err := l.AppendBinary(nil)
			require.NoError(t, err)
			for _, r := range slices.Backward(all) { // so that none moves up
				if r.Delay() > 0 {
					r.Cancel()
				}
			}
			restored, err := policy.Restore(state)
			require.NoError(t, err)
			for _, passed := range []time.Duration{0, time.Second, 10 * time.Second} {
				clock.Advance(passed)
				require.InDelta(t, l.Stored(), restored.Stored(), 1e-6, "%s, seed %d, %v", name, seed, passed)
				require.InDelta(t, 0, l.NextFree().Sub(restored.NextFree()), 2, "%s, seed %d, %v", name, seed, passed)
			}
		}
	}
}

// A lower rate stretches what the latest cost was rounded up by: what is saved can be restored then, too.
func TestSavedAfterALowerRate(t *testing.T) {
	ctx := context.Background()
	clock := clockwork.NewFakeClock()
	for _, change := range []func(*reserve.Limiter, float64) error{(*reserve.Limiter).SetRate, (*reserve.Limiter).Retime} {
		l := pace.Must(pace.NewBursty(30, pace.WithCapacity(5), reserve.WithClock(clock)))
		for range 7 {
			_, err := l.Reserve(ctx, 1)
			require.NoError(t, err)
		}
		require.NoError(t, change(l, 1))
		state, err := l.AppendBinary(nil)
		require.NoError(t, err)
		restored, err := pace.Must(pace.Bursty(1, pace.WithCapacity(5), reserve.WithClock(clock))).Restore(state)
		require.NoError(t, err)
		require.InDelta(t, time.Second, restored.NextFree().Sub(clock.Now()), 50) // the rest is of requests that wait
	}
}

// As above, worked.
func TestSavedChargesWorked(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	on := reserve.WithClock(clock)
	for _, c := range []struct {
		policy *reserve.Policy
		free   time.Duration
	}{
		{pace.Must(pace.Bursty(10, on)), 100 * time.Second},
		{pace.Must(pace.TokenBucket(10, 10, on)), 99100 * time.Millisecond},
		{pace.Must(warmup.Policy(10, time.Second, reserve.WithStored(0), on)), 100 * time.Second},
		{pace.Must(calendar.Policy(10, calendar.Every(time.Minute), on)), 100 * time.Minute},
		{pace.Must(window.Policy(10, time.Minute, on)), time.Minute},
	} {
		l := c.policy.Limiter()
		first, err := l.Reserve(context.Background(), 10)
		require.NoError(t, err)
		_, err = l.Reserve(context.Background(), 1)
		require.NoError(t, err)
		first.Settle(1000)
		state, err := l.AppendBinary(nil)
		require.NoError(t, err)
		restored, err := c.policy.Restore(state)
		require.NoError(t, err)
		require.InDelta(t, c.free, restored.NextFree().Sub(clock.Now()), 1e5)
	}
}

// A clock that is set back gives nothing and forgives nothing.
func TestRestoredBeforeItWasSaved(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	l := policies(clockwork.NewFakeClockAt(now))["thirds"].Limiter()
	l.TryAcquire(1)
	state, err := l.AppendBinary(nil)
	require.NoError(t, err)
	restored, err := policies(clockwork.NewFakeClockAt(now.Add(-time.Hour)))["thirds"].Restore(state)
	require.NoError(t, err)
	require.Equal(t, now.Add(-time.Hour).Add(333333334), restored.NextFree())
	require.Zero(t, restored.Stored())
}

func TestStateErrors(t *testing.T) {
	clock := clockwork.NewFakeClock()
	all := policies(clock)
	state, err := all["window"].Limiter().AppendBinary(nil)
	require.NoError(t, err)
	newer := append([]byte(nil), state...)
	newer[4] = 9
	damaged := append([]byte(nil), state...)
	damaged[9] ^= 1
	short := sealed.End(append(sealed.Begin(nil, "window"), 1, 2, 3, 4, 5, 6, 7), 0) // less than a time
	for want, c := range map[string]struct {
		policy string
		state  []byte
	}{
		`they are of "window"; want "pace"`:                    {"bursty", state},
		"they are of version 9; this pace reads version 2":     {"window", newer},
		"their checksum is wrong: they are cut off or damaged": {"window", damaged},
		"they do not begin with pace's mark":                   {"window", nil},
		"they are cut off":                                     {"window", short},
	} {
		_, err := all[c.policy].Restore(c.state)
		var e *reserve.StateError
		require.True(t, errors.As(err, &e))
		require.EqualError(t, err, "pace: these bytes are no state to restore: "+want)
	}
}

// No bytes panic, and none give more than a new limiter that is full has.
func FuzzRestore(f *testing.F) {
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	names := []string{"bursty", "bucket", "thirds", "warm-up", "window", "day", "spread", "from first"}
	for i, name := range names {
		l := policies(clock)[name].Limiter()
		l.TryAcquire(2)
		state, err := l.AppendBinary(nil)
		require.NoError(f, err)
		f.Add(byte(i), state)
	}
	f.Fuzz(func(t *testing.T, kind byte, state []byte) {
		policy := policies(clock)[names[int(kind)%len(names)]]
		l, err := policy.Restore(resum(state)) // so that damage gets past the checksum
		if err != nil {
			var e *reserve.StateError
			require.ErrorAs(t, err, &e)
			return
		}
		most := l.Snapshot().Capacity
		require.LessOrEqual(t, l.Stored(), most)
		if k := int(kind) % len(names); k != 3 { // stored permits of a warming-up limiter are not for use at once
			n := 0
			for n <= int(most)+1 && l.TryAcquire(1) {
				n++
			}
			require.LessOrEqual(t, n, int(most)+1, fmt.Sprint(names[k]))
		}
	})
}

// resum returns a state with the checksum that its bytes should have.
func resum(state []byte) []byte {
	if len(state) < 4 {
		return state
	}
	body := slices.Clone(state[:len(state)-4])
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}
