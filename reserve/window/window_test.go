package window_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a limiter on a fake clock.
type bench struct {
	*testing.T
	*clockwork.FakeClock
	*reserve.Limiter
}

func newBench(t *testing.T, n int, per time.Duration, opts ...reserve.Option) *bench {
	clock := clockwork.NewFakeClock()
	l, err := window.New(n, per, append(opts, reserve.WithClock(clock))...)
	require.NoError(t, err)
	return &bench{t, clock, l}
}

// reserve reserves, and checks for how long.
func (b *bench) reserve(n int, want time.Duration) *reserve.Reservation {
	b.Helper()
	r, err := b.Reserve(ctx, n)
	require.NoError(b, err)
	require.Equal(b, want.String(), r.Delay().String())
	return &r
}

func TestNeverMoreThanNInAnyStretch(t *testing.T) {
	b := newBench(t, 3, s)
	b.reserve(1, 0)
	b.Advance(600 * ms)
	b.reserve(1, 0)
	b.reserve(1, 0)
	b.reserve(1, 400*ms) // a second after the first
	b.reserve(1, s)      // a second after the second
	require.Zero(t, b.Stored())
	require.Equal(t, s, b.NextFree().Sub(b.Now()))
	require.False(t, b.TryAcquire(1))
}

// Half-open: a permit may go when exactly per has passed.
func TestExactlyPerLater(t *testing.T) {
	b := newBench(t, 1, s)
	require.True(t, b.Allow())
	b.Advance(s - 1)
	require.False(t, b.Allow())
	b.Advance(1)
	require.True(t, b.Allow())
}

func TestNoPrepaymentAndNoSaving(t *testing.T) {
	b := newBench(t, 10, s)
	b.Advance(time.Hour)
	require.Equal(t, 10.0, b.Stored())
	b.reserve(8, 0)
	b.reserve(8, s)
	b.reserve(8, 2*s)
}

// The example of the package's documentation.
func TestASmallerOneMayGoBefore(t *testing.T) {
	b := newBench(t, 3, s)
	b.reserve(2, 0)
	b.reserve(2, s)
	b.reserve(1, 0)
	b.reserve(1, s)
	b.reserve(1, 2*s)
}

func TestMoreThanTheWindow(t *testing.T) {
	b := newBench(t, 10, s, reserve.WithMaxWait(s))
	other := reserve.Must(pace.NewBursty(5, reserve.WithClock(b.FakeClock)))
	deadline, cancel := clockwork.WithTimeout(ctx, b.FakeClock, s)
	defer cancel()
	for _, ask := range []func() error{
		func() error { _, err := b.Reserve(ctx, 11); return err },
		func() error { _, err := b.ReserveWithin(deadline, 11, 0); return err },
		func() error { _, err := b.Acquire(ctx, 11); return err },
		func() error { _, err := reserve.All(other, b.Limiter).ReserveWithin(ctx, 11, s); return err },
	} {
		var size *reserve.SizeError
		require.ErrorAs(t, ask(), &size)
		require.Equal(t, reserve.SizeError{Permits: 11, Max: 10}, *size)
		require.EqualError(t, size, "reserve: 11 permits were asked for at once; this limiter never grants more than 10")
	}
	require.False(t, b.TryAcquire(11))
	require.Equal(t, 10.0, b.Stored(), "nothing was taken")
	require.NoError(t, b.SetRate(math.Inf(1)))
	require.False(t, b.TryAcquire(11), "n stays")
	require.True(t, b.TryAcquire(10))
}

func TestRefusals(t *testing.T) {
	b := newBench(t, 2, s, reserve.WithMaxWait(3*s))
	b.reserve(2, 0)
	_, err := b.ReserveWithin(ctx, 1, 400*ms)
	require.Equal(t, &reserve.WaitError{Wait: s, MaxWait: 400 * ms}, err)
	for i := range 3 {
		b.reserve(2, time.Duration(i+1)*s)
	}
	_, err = b.Reserve(ctx, 1)
	require.Equal(t, &reserve.WaitError{Wait: 4 * s, MaxWait: 3 * s}, err)
}

func TestCancel(t *testing.T) {
	b := newBench(t, 2, s)
	first := b.reserve(2, 0)
	second, third := b.reserve(1, s), b.reserve(1, s)
	fourth := b.reserve(1, 2*s)
	third.Cancel()
	third.Cancel()
	b.reserve(1, s) // the cancelled place
	fourth.Cancel()
	fourth = b.reserve(2, 2*s)
	require.Equal(t, s, second.Delay(), "no promised time moves")

	b.Advance(s / 2)
	first.Cancel() // not used, but those at 1 s have been promised what came after it
	b.reserve(1, 2*s+s/2)
	fourth.Cancel()
	b.reserve(2, 1500*ms)
}

// What was granted and not used leaves no trace.
func TestCancelWhenItsTimeHasCome(t *testing.T) {
	b := newBench(t, 2, s)
	r := b.reserve(2, 0)
	b.Advance(700 * ms)
	require.False(t, b.TryAcquire(1))
	r.Cancel()
	require.True(t, b.TryAcquire(2))

	r = b.reserve(1, s)
	b.Advance(3 * s) // it has left the window
	require.True(t, b.TryAcquire(2))
	r.Cancel()
	require.Zero(t, b.Stored())
}

func TestSettle(t *testing.T) {
	b := newBench(t, 10, s)
	r := b.reserve(6, 0)
	b.Advance(100 * ms)
	r.Settle(2)
	require.Equal(t, 8.0, b.Stored())
	r = b.reserve(6, 0)
	b.Advance(100 * ms)
	r.Settle(11)         // at 200 ms: 2, 6 and 5, three too many
	b.reserve(1, 900*ms) // 2 leave at 1 s, which is not enough; 6 leave at 1.1 s
	b.Advance(900 * ms)
	require.Equal(t, 4.0, b.Stored(), "5 are left, and the one")
}

// The window's clock stands still as well.
func TestPause(t *testing.T) {
	b := newBench(t, 2, s)
	due := b.reserve(2, 0)
	promised := b.reserve(1, s)
	b.Advance(400 * ms)
	b.PauseUntil(b.Now().Add(10 * s))
	require.Zero(t, due.Delay())
	require.Equal(t, 10*s+600*ms, promised.Delay())
	require.False(t, b.TryAcquire(1))
	b.Advance(10 * s)
	require.Zero(t, b.Stored(), "what was used before the pause is in the window still")
	b.reserve(1, 600*ms)
	b.reserve(1, 1600*ms)
}

func TestSetRate(t *testing.T) {
	b := newBench(t, 100, time.Minute)
	require.InEpsilon(t, 100.0/60, b.Rate(), 1e-15)
	b.reserve(100, 0)
	promised := b.reserve(1, 60*s)
	require.NoError(t, b.SetRate(100)) // 100 a second
	require.Equal(t, 100.0, b.Rate())
	require.Equal(t, 60*s, promised.Delay(), "promised times never move")
	b.reserve(100, s)
	b.Advance(58 * s)
	require.Equal(t, 100.0, b.Stored())

	require.NoError(t, b.SetRate(reserve.Per(100, time.Hour)))
	require.Equal(t, 99.0, b.Stored(), "one is promised; what has left the window stays out")
	b.reserve(99, 0)
	b.reserve(1, time.Hour)

	require.NoError(t, b.SetRate(math.Inf(1)))
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
	require.Error(t, b.SetRate(0))
}

// Rates that give windows of less than a nanosecond count as one per nanosecond.
func TestShortestWindow(t *testing.T) {
	b := newBench(t, 1, 1)
	require.NoError(t, b.SetRate(1e12))
	require.Equal(t, 1e12, b.Rate())
	b.reserve(1, 0)
	b.reserve(1, 1)
	b.reserve(1, 2)
}

// Numbers of permits that only just fit an int neither overflow nor forgive.
func TestLargestNumbers(t *testing.T) {
	b := newBench(t, math.MaxInt, s)
	first, second, third := b.reserve(1, 0), b.reserve(1, 0), b.reserve(1, 0)
	first.Settle(math.MaxInt)
	second.Settle(math.MaxInt)
	third.Settle(3) // 2^64 + 1 altogether
	require.Zero(t, b.Stored())
	require.False(t, b.TryAcquire(1))
	b.reserve(math.MaxInt, s)
	b.reserve(math.MaxInt, 2*s)
	b.reserve(1, 3*s)
	b.Advance(3 * s)
	require.Equal(t, float64(math.MaxInt-1), b.Stored())
}

func TestBadInput(t *testing.T) {
	for _, tt := range []struct {
		n    int
		per  time.Duration
		opts []reserve.Option
		want string
	}{
		{n: 0, per: s, want: "window: n is 0; want at least 1 permit"},
		{n: -3, per: s, want: "window: n is -3; want at least 1 permit"},
		{n: 1, per: 0, want: "window: per is 0s; want a positive duration"},
		{n: 1, per: -s, want: "window: per is -1s; want a positive duration"},
		{n: 1, per: s, opts: []reserve.Option{pace.WithBurst(s)}, want: "window: WithBurst does not apply to a window"},
		{n: 1, per: s, opts: []reserve.Option{reserve.PayUpfront()}, want: "window: PayUpfront does not apply to a window"},
		{n: 1, per: s, opts: []reserve.Option{reserve.WithStored(1)}, want: "window: WithStored does not apply to a window"},
		{n: 1, per: s, opts: []reserve.Option{reserve.WithClock(nil)}, want: "reserve: WithClock is <nil>; want a clock"},
	} {
		l, err := window.New(tt.n, tt.per, tt.opts...)
		require.EqualError(t, err, tt.want)
		require.Nil(t, l)
	}
	var option *reserve.OptionError
	_, err := window.Policy(1, s, pace.WithBurst(s))
	require.ErrorAs(t, err, &option)
}

// Limiters of one policy share nothing but it.
func TestPolicy(t *testing.T) {
	p, err := window.Policy(1, s)
	require.NoError(t, err)
	a, b := p.Limiter(), p.Limiter()
	require.True(t, a.Allow())
	require.False(t, a.Allow())
	require.True(t, b.Allow())
	_, smooth := p.Terms()
	require.False(t, smooth)
}
