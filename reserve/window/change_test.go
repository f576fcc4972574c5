package window_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

// The window's clock stands still as well.
func TestPause(t *testing.T) {
	b := newBench(t, 2, s)
	due := b.Waits(2, 0)
	promised := b.Waits(1, s)
	b.Advance(400 * ms)
	b.PauseUntil(b.Now().Add(10 * s))
	require.Zero(t, due.Delay())
	require.Equal(t, 10*s+600*ms, promised.Delay())
	require.False(t, b.TryAcquire(1))
	b.Advance(10 * s)
	require.Zero(t, b.Stored(), "what was used before the pause is in the window still")
	b.Waits(1, 600*ms)
	b.Waits(1, 1600*ms)
}

func TestSetRate(t *testing.T) {
	b := newBench(t, 100, time.Minute)
	require.InEpsilon(t, 100.0/60, b.Rate(), 1e-15)
	b.Waits(100, 0)
	promised := b.Waits(1, 60*s)
	require.NoError(t, b.SetRate(100)) // 100 a second
	require.Equal(t, 100.0, b.Rate())
	require.Equal(t, s, promised.Delay(), "it goes as soon as the new window has room")
	b.Waits(99, s)
	b.Waits(100, 2*s)
	b.Advance(2 * s)
	require.Zero(t, b.Stored())
	b.Advance(s)
	require.Equal(t, 100.0, b.Stored())
	b.Waits(1, 0)

	require.NoError(t, b.SetRate(reserve.Per(100, time.Hour)))
	require.Equal(t, 99.0, b.Stored(), "what has left the window stays out")
	b.Waits(99, 0)
	b.Waits(1, time.Hour)

	require.NoError(t, b.SetRate(math.Inf(1)))
	b.Waits(1, 0)
	for range 1000 {
		require.True(t, b.TryAcquire(100))
	}
	require.Equal(t, 100.0, b.Stored())

	require.NoError(t, b.SetRate(1e-300)) // n permits, once and for all
	require.Zero(t, b.Stored(), "what goes at this moment is in every window")
	b.Advance(1)
	r, err := b.Reserve(ctx, 100)
	require.NoError(t, err)
	require.Greater(t, r.Delay(), 100*365*24*time.Hour)
	require.ErrorAs(t, b.SetRate(0), new(*reserve.ValueError))
}

// The example of the package's documentation.
func TestSetRateWhileOneWaits(t *testing.T) {
	b := newBench(t, 3, s)
	b.Waits(3, 0)
	fourth := b.Waits(1, s)
	require.NoError(t, b.SetRate(3./60))
	require.Equal(t, s, fourth.Delay())
	b.Waits(1, 60*s)
	b.Waits(1, 60*s)
	last := b.Waits(1, 61*s)
	require.NoError(t, b.Retime(3./60))
	require.Equal(t, 60*s, fourth.Delay())
	require.Equal(t, 120*s, last.Delay())
}

// Waiting requests wait as long as the new window says.
func TestRetime(t *testing.T) {
	b := newBench(t, 2, time.Minute)
	b.Waits(2, 0)
	b.Advance(10 * s)
	second, third := b.Waits(2, 50*s), b.Waits(1, 110*s)
	require.NoError(t, b.Retime(2./30)) // 2 in 30 s
	require.Equal(t, 20*s, second.Delay())
	require.Equal(t, 50*s, third.Delay())
	require.NoError(t, b.SetRate(0.0001))
	require.Equal(t, 20*s, second.Delay())
	require.NoError(t, b.Retime(2)) // 2 a second
	require.Zero(t, second.Delay())
	require.Equal(t, s, third.Delay())
	require.Equal(t, b.Now(), second.At())
	require.NoError(t, b.Retime(2./30))
	require.Equal(t, 30*s, third.Delay(), "a lower one makes it later")
	b.Waits(1, 30*s)
	require.NoError(t, b.Retime(math.Inf(1)))
	require.Zero(t, third.Delay())
	require.Equal(t, 2., b.Stored())
	require.ErrorAs(t, b.Retime(-1), new(*reserve.ValueError))
}

func TestSetPolicy(t *testing.T) {
	b := newBench(t, 5, s)
	policy := func(n int, per time.Duration) *reserve.Policy {
		return reserve.Must(window.Policy(n, per, reserve.WithClock(b.FakeClock), reserve.WithMaxWait(time.Hour)))
	}
	b.Waits(4, 0)
	waits := b.Waits(4, s)
	require.NoError(t, b.SetPolicy(policy(3, time.Minute)))
	require.Equal(t, 3/60., b.Rate())
	require.Equal(t, s, waits.Delay(), "what is promised stays")
	require.Equal(t, 3., (*engine.Limiter)(b.Limiter).Outlook().Capacity)
	_, err := b.Reserve(ctx, 4)
	require.EqualError(t, err, "pace: 4 permits were asked for at once; this limiter never grants more than 3")
	third := b.Waits(3, 61*s)
	require.NoError(t, b.Retime(3)) // 3 a second
	require.Equal(t, s, waits.Delay(), "more than the window: it goes when that is empty")
	require.Equal(t, 2*s, third.Delay())
	require.NoError(t, b.SetPolicy(policy(9, s)))
	require.Zero(t, waits.Delay())
	require.Equal(t, s, third.Delay())
	b.Waits(6, s)
	b.Waits(8, 2*s)
	_, err = b.ReserveWithin(ctx, 9, 2*time.Hour)
	require.NoError(t, err)
	require.NoError(t, b.SetPolicy(policy(1, time.Hour)))
	_, err = b.ReserveWithin(ctx, 1, 2*time.Hour)
	require.Equal(t, &reserve.WaitError{Wait: time.Hour + 3*s, MaxWait: time.Hour}, err)
	require.ErrorAs(t, b.SetPolicy(reserve.Must(pace.Bursty(1, reserve.WithClock(b.FakeClock)))), new(*reserve.ValueError))
}

// A Resume moves them back by what is left of the pause.
func TestResume(t *testing.T) {
	b := newBench(t, 2, s)
	went := b.Waits(2, 0)
	promised := b.Waits(1, s)
	b.Advance(400 * ms)
	b.PauseUntil(b.Now().Add(10 * s))
	b.Advance(2 * s)
	require.Equal(t, 8*s+600*ms, promised.Delay())
	third := b.Waits(1, 8*s+600*ms)
	require.Equal(t, -2400*ms, went.At().Sub(b.Now()))
	went.Cancel() // during the pause: they go at its end
	require.Equal(t, 8*s, promised.Delay())
	require.Equal(t, 8*s, third.Delay())
	require.Zero(t, b.Stored())
	third.Cancel()
	b.Resume()
	require.Zero(t, promised.Delay())
	require.Equal(t, b.Now(), promised.At())
	require.Equal(t, 1., b.Stored())
	b.Resume()
	b.Waits(1, 0)
	b.Waits(1, s)
}

// A charge waits for those in front of it, and for nothing else.
func TestChargeInAPause(t *testing.T) {
	b := newBench(t, 5, s)
	b.PauseUntil(b.Now().Add(2 * s))
	first := b.Waits(2, 2*s)
	(*engine.Limiter)(b.Limiter).Charge(1)
	require.Zero(t, b.Stored())
	first.Cancel()
	require.Equal(t, 4., b.Stored())
}

// What is reserved in a pause goes at its end, and what is charged counts at once.
func TestReserveInAPause(t *testing.T) {
	b := newBench(t, 5, s)
	b.PauseUntil(b.Now().Add(2 * s))
	require.Equal(t, 5., b.Stored())
	require.False(t, b.TryAcquire(1))
	require.Equal(t, b.Now().Add(2*s), b.NextFree())
	(*engine.Limiter)(b.Limiter).Charge(2)
	require.Equal(t, 3., b.Stored())
	first := b.Waits(2, 2*s)
	(*engine.Limiter)(b.Limiter).Charge(1)
	b.Waits(1, 3*s)
	require.Zero(t, b.Stored())
	b.PauseUntil(b.Now().Add(s))
	require.Equal(t, 2*s, first.Delay(), "no shorter than it was")
	b.Advance(2 * s)
	require.Zero(t, first.Delay())
	require.Equal(t, b.Now(), first.At())
	b.Waits(1, s)
}

// Rates that give windows of less than a nanosecond count as one per nanosecond.
func TestShortestWindow(t *testing.T) {
	b := newBench(t, 1, time.Microsecond)
	require.NoError(t, b.SetRate(1e12))
	require.Equal(t, 1e12, b.Rate())
	b.Waits(1, 0)
	b.Waits(1, 1)
	b.Waits(1, 2)
}

// Neither a window nor a pause has an end that a time could not have.
func TestLongestTimes(t *testing.T) {
	b := newBench(t, 1, math.MaxInt64)
	b.Advance(time.Hour)
	b.Waits(1, 0)
	second := b.Waits(1, math.MaxInt64/2)
	b.Waits(1, math.MaxInt64-time.Hour)
	b.Waits(1, math.MaxInt64-time.Hour)
	b.PauseUntil(b.Now().Add(math.MaxInt64))
	require.Equal(t, math.MaxInt64-1-time.Hour, second.Delay())
	b.Resume()
	b.Advance(time.Hour)
	require.False(t, b.Allow())
}
