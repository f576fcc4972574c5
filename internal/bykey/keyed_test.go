package bykey_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
)

func TestEachKeyHasItsOwnLimiter(t *testing.T) {
	b := bursty(1, 100)
	require.True(t, b.TryAcquire("a", 1))
	require.False(t, b.TryAcquire("a", 1))
	require.True(t, b.TryAcquire("b", 1))
	require.Equal(t, 2, b.Len())
	b.Advance(s)
	require.True(t, b.TryAcquire("a", 1))
}

// A key that is first seen late has been idle since New, as the worked example in the
// package's comment says.
func TestAKeyHasBeenIdleSinceNew(t *testing.T) {
	b := bursty(10, 100)
	require.Zero(t, b.one("a").Stored())
	b.Advance(500 * time.Millisecond)
	require.Equal(t, 5.0, b.one("a").Stored())
	b.Advance(59500 * time.Millisecond)
	require.True(t, b.TryAcquire("a", 10))
	require.True(t, b.TryAcquire("b", 100))
	b.Advance(500 * time.Millisecond)
	require.Equal(t, 5.0, b.one("a").Stored())
	b.Advance(499999999)
	b.Sweep()
	require.Equal(t, 2, b.Len())
	b.Advance(1)
	b.Sweep()
	require.Equal(t, 1, b.Len(), "a is like new")
	require.Equal(t, 10.0, b.one("a").Stored())
	require.Equal(t, b.begin.Add(69*s), b.one("b").NextFree())
	b.Advance(9*s - 1)
	b.Sweep()
	require.Equal(t, 1, b.Len())
	b.Advance(1)
	b.Sweep()
	require.Zero(t, b.Len(), "b is like new at 70 s")
}

// On the real clock, policies that are made when a key is seen say the same as one
// that was made before: what a key has stored does not depend on when its policy was made.
func TestPoliciesMadeOnTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(10) })
		require.Zero(t, keys.For("a").(keyed.Limiter).Stored())
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 5.0, keys.For("b").(keyed.Limiter).Stored())
		require.True(t, keys.TryAcquire("b", 5))
		time.Sleep(time.Hour)
		inside(keys).Sweep()
		require.Zero(t, keys.Len())
		require.Equal(t, 10.0, keys.For("b").(keyed.Limiter).Stored())
	})
}

// And on a clock of their own they begin with the first policy.
func TestPoliciesMadeOnTheWayOnTheirOwnClock(t *testing.T) {
	b := bursty(10, 100)
	keys := keyed.New(func(string) (*reserve.Policy, error) { return pace.Bursty(10, reserve.WithClock(b.FakeClock)) })
	require.Zero(t, keys.For("a").(keyed.Limiter).Stored())
	b.Advance(500 * time.Millisecond)
	require.Equal(t, 5.0, keys.For("a").(keyed.Limiter).Stored())
	require.Equal(t, 5.0, keys.For("b").(keyed.Limiter).Stored())
}

// What only looks, and what is refused, leaves no trace.
func TestWhoTakesNothingCostsNothing(t *testing.T) {
	b := bursty(1, 100, reserve.PayUpfront())
	require.Equal(t, 1.0, b.one("a").Rate())
	require.Zero(t, b.one("a").Stored())
	require.Equal(t, b.begin.Add(s), b.one("a").NextFree())
	require.False(t, b.TryAcquire("a", 1))
	require.False(t, b.TryAcquire("a", 0))
	require.ErrorAs(t, b.one("a").SetRate(-1), new(*reserve.ValueError))
	b.one("a").PauseUntil(b.begin)
	var refused *reserve.WaitError
	_, err := b.ReserveWithin(ctx, "a", 3, s)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 3*s, refused.Wait)
	var bad *reserve.ValueError
	_, err = b.Acquire(ctx, "a", 0)
	require.ErrorAs(t, err, &bad)
	gone, cancel := context.WithCancelCause(ctx)
	cancel(errGone)
	_, err = b.Acquire(gone, "a", 1)
	require.ErrorIs(t, err, errGone)
	require.Zero(t, b.Len())

	// Nor does what is refused make a small one grow.
	b.Advance(s)
	require.True(t, b.TryAcquire("a", 1))
	_, err = b.ReserveWithin(ctx, "a", 3, s)
	require.ErrorAs(t, err, &refused)
	require.Zero(t, b.Promoted())
	require.Equal(t, 1, b.Len())
}

var errGone = errors.New("the caller has gone")

func TestUnlimitedKeysCostNothing(t *testing.T) {
	b := bursty(math.Inf(1), 1)
	for _, key := range []string{"a", "b", "c"} {
		require.True(t, b.TryAcquire(key, 1e9))
	}
	require.Zero(t, b.Len())
}

// A pause and a changed rate are remembered, and when they are over the key is dropped.
func TestPausedAndSlowedKeysAreRemembered(t *testing.T) {
	b := bursty(10, 100)
	b.Advance(time.Minute)
	a := b.one("a")
	a.PauseUntil(b.Now().Add(s))
	b.Advance(s / 2)
	b.Sweep()
	require.Equal(t, 1, b.Len())
	require.False(t, a.TryAcquire(1))
	b.Advance(s / 2)
	require.True(t, a.TryAcquire(1))
	b.Advance(s)
	b.Sweep()
	require.Zero(t, b.Len())

	require.NoError(t, a.SetRate(5))
	b.Advance(time.Hour)
	b.Sweep()
	require.Equal(t, 1, b.Len())
	require.Equal(t, 5.0, a.Rate())
	require.Equal(t, 5.0, a.Stored())
	require.NoError(t, a.SetRate(10))
	b.Advance(time.Hour)
	b.Sweep()
	require.Zero(t, b.Len())
	require.Equal(t, 10.0, a.Rate())
}

// What was used beyond a reservation is charged to the key, though its limiter was
// dropped in between, and there is no room; what is given back then is of no use.
func TestSettleAfterTheKeyWasDropped(t *testing.T) {
	b := bursty(1, 1)
	used, err := b.ReserveWithin(ctx, "a", 1, 0)
	require.NoError(t, err)
	unused, err := b.ReserveWithin(ctx, "a", 1, 10*s)
	require.NoError(t, err)
	b.Advance(10 * s)
	b.Sweep()
	require.Zero(t, b.Len())

	require.True(t, b.TryAcquire("b", 1))
	unused.Cancel()
	require.False(t, b.TryAcquire("a", 1), "no room")
	used.Settle(101)
	used.Settle(101)
	require.Equal(t, 2, b.Len())
	require.False(t, b.TryAcquire("a", 1))
	require.Equal(t, b.Now().Add(99*s), b.one("a").NextFree(), "one was stored")

	again, err := b.ReserveWithin(ctx, "a", 1, reserve.Forever)
	require.NoError(t, err)
	require.Equal(t, 99*s, again.Delay())
}

func TestAcquireSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := reserve.Must(pace.Bursty(1))
		keys := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
		waited, err := keys.Acquire(ctx, "a", 3)
		require.NoError(t, err)
		require.Zero(t, waited)
		go inside(keys).Sweep()
		waited, err = keys.Acquire(ctx, "a", 1)
		require.NoError(t, err)
		require.Equal(t, 3*s, waited)

		hasty, cancel := context.WithTimeout(ctx, s/2)
		defer cancel()
		_, err = keys.Acquire(hasty, "a", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		patient, giveUp := context.WithCancelCause(ctx)
		go func() {
			time.Sleep(s / 4)
			giveUp(errGone)
		}()
		waited, err = keys.Acquire(patient, "a", 1)
		require.ErrorIs(t, err, errGone)
		require.Equal(t, s/4, waited)
		require.Equal(t, 3*s/4, time.Until(keys.For("a").(keyed.Limiter).NextFree()), "given back")
		waited, err = reserve.Acquire(ctx, keys.For("a"), 1)
		require.NoError(t, err)
		require.Equal(t, 3*s/4, waited)
	})
}

// All of two keys' limiters: if one refuses, the other has not been asked.
func TestAllOfTwoKeys(t *testing.T) {
	b := bursty(1, 100)
	both := reserve.All(b.For("a"), b.For("b"))
	require.True(t, b.TryAcquire("b", 5))
	_, err := both.ReserveWithin(ctx, 1, s)
	require.ErrorAs(t, err, new(*reserve.WaitError))
	require.Equal(t, b.begin, b.one("a").NextFree())
	r, err := both.ReserveWithin(ctx, 1, 10*s)
	require.NoError(t, err)
	require.Equal(t, 5*s, r.Delay())
	require.Equal(t, b.begin.Add(6*s), b.one("b").NextFree())
	r.Cancel()
	require.Equal(t, b.begin.Add(5*s), b.one("b").NextFree())
	require.Equal(t, b.begin, b.one("a").NextFree())
	b.Sweep()
	require.Equal(t, 1, b.Len())
}

// A key that is never equal to itself is a new one each time, and can be dropped all
// the same.
func TestKeysThatAreNotNumbers(t *testing.T) {
	b := bursty(1, 100)
	policy := reserve.Must(pace.Bursty(1, reserve.WithClock(b.FakeClock)))
	keys := keyed.New(func(float64) (*reserve.Policy, error) { return policy, nil })
	for range 100 {
		require.True(t, keys.TryAcquire(math.NaN(), 1))
	}
	require.Equal(t, 100, keys.Len())
	b.Advance(time.Hour)
	inside(keys).Sweep()
	require.Zero(t, keys.Len())
	_, asks := inside(keys).Counted()
	require.Zero(t, asks)
}
