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
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

var ctx = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBench(t *testing.T, n int, per time.Duration, opts ...reserve.Option) *limitertest.Bench {
	t.Helper()
	return limitertest.New(t, func(o ...reserve.Option) (*reserve.Limiter, error) { return window.New(n, per, o...) }, opts...)
}

func TestNeverMoreThanNInAnyStretch(t *testing.T) {
	b := newBench(t, 3, s)
	b.Waits(1, 0)
	b.Advance(600 * ms)
	b.Waits(1, 0)
	b.Waits(1, 0)
	b.Waits(1, 400*ms) // a second after the first
	b.Waits(1, s)      // a second after the second
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
	b.Waits(8, 0)
	b.Waits(8, s)
	b.Waits(8, 2*s)
}

// The example of the package's documentation.
func TestFirstComeFirstServed(t *testing.T) {
	b := newBench(t, 3, s)
	b.Waits(2, 0)
	second := b.Waits(2, s)
	b.Waits(1, s) // it would fit now, but not before requests that asked first
	last := b.Waits(1, 2*s)
	require.Zero(t, b.Stored())
	require.False(t, b.TryAcquire(1))
	second.Cancel()
	require.Equal(t, s, last.Delay(), "the one before it goes at once")
	require.Zero(t, b.Stored())
	b.Waits(2, s)
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
		require.EqualError(t, size, "pace: 11 permits were asked for at once; this limiter never grants more than 10")
	}
	require.False(t, b.TryAcquire(11))
	require.Equal(t, 10.0, b.Stored(), "nothing was taken")
	require.NoError(t, b.SetRate(math.Inf(1)))
	require.False(t, b.TryAcquire(11), "n stays")
	require.True(t, b.TryAcquire(10))
}

func TestRefusals(t *testing.T) {
	b := newBench(t, 2, s, reserve.WithMaxWait(3*s))
	b.Waits(2, 0)
	_, err := b.ReserveWithin(ctx, 1, 400*ms)
	require.Equal(t, &reserve.WaitError{Wait: s, MaxWait: 400 * ms}, err)
	for i := range 3 {
		b.Waits(2, time.Duration(i+1)*s)
	}
	_, err = b.Reserve(ctx, 1)
	require.Equal(t, &reserve.WaitError{Wait: 4 * s, MaxWait: 3 * s}, err)
}

// Those behind it move up.
func TestCancel(t *testing.T) {
	b := newBench(t, 2, s)
	first := b.Waits(2, 0)
	second, third := b.Waits(1, s), b.Waits(1, s)
	fourth := b.Waits(2, 2*s)
	b.Advance(s / 4)
	third.Cancel()
	third.Cancel()
	require.Equal(t, s*3/4, second.Delay())
	require.Equal(t, s*7/4, fourth.Delay(), "two do not fit beside the second one")
	second.Cancel()
	require.Equal(t, s*3/4, fourth.Delay())
	require.Equal(t, fourth.At(), b.Now().Add(s*3/4))
	b.Advance(s / 4)
	first.Cancel() // not used
	require.Zero(t, fourth.Delay())
	require.Equal(t, b.Now(), fourth.At(), "half a second after the beginning")
	b.Waits(1, s)
	fourth.Cancel()
	require.Equal(t, 1., b.Stored(), "one was granted at once")
}

// A part that comes back of one that waits leaves it in its place.
func TestSettleBeforeTheTime(t *testing.T) {
	b := newBench(t, 4, s)
	b.Waits(2, 0)
	b.Advance(s / 2)
	second, third := b.Waits(3, s/2), b.Waits(1, s/2)
	fourth := b.Waits(1, 3*s/2)
	second.Settle(2)
	require.Zero(t, second.Delay(), "two and two")
	require.Equal(t, s/2, third.Delay())
	require.Equal(t, s/2, fourth.Delay())
}

// Settled at more: the difference counts behind the waiting requests.
func TestChargeBehindThoseThatWait(t *testing.T) {
	b := newBench(t, 2, s)
	b.Waits(2, 0).Settle(3)
	waits := b.Waits(2, s)
	(*engine.Limiter)(b.Limiter).Charge(1) // when that is granted
	require.Equal(t, s, waits.Delay())
	b.Waits(1, 2*s)
	b.Advance(s)
	require.Zero(t, waits.Delay())
	waits.Settle(0)
	b.Waits(1, s) // charged: 1, reserved: 1, and it
}

// What was granted and not used leaves no trace.
func TestCancelWhenItsTimeHasCome(t *testing.T) {
	b := newBench(t, 2, s)
	r := b.Waits(2, 0)
	b.Advance(700 * ms)
	require.False(t, b.TryAcquire(1))
	r.Cancel()
	require.True(t, b.TryAcquire(2))

	r = b.Waits(1, s)
	b.Advance(3 * s) // it has left the window
	require.True(t, b.TryAcquire(2))
	r.Cancel()
	require.Zero(t, b.Stored())
}

func TestSettle(t *testing.T) {
	b := newBench(t, 10, s)
	r := b.Waits(6, 0)
	b.Advance(100 * ms)
	r.Settle(2)
	require.Equal(t, 8.0, b.Stored())
	r = b.Waits(6, 0)
	b.Advance(100 * ms)
	r.Settle(11)       // at 200 ms: 2, 6 and 5, three too many
	b.Waits(1, 900*ms) // 2 leave at 1 s, which is not enough; 6 leave at 1.1 s
	b.Advance(900 * ms)
	require.Equal(t, 4.0, b.Stored(), "5 are left, and the one")
}

// Large numbers of permits neither overflow nor forgive.
func TestLargestNumbers(t *testing.T) {
	const most = math.MaxInt >> 3
	b := newBench(t, most, s)
	first, second, third := b.Waits(1, 0), b.Waits(1, 0), b.Waits(1, 0)
	first.Settle(most)
	second.Settle(most)
	third.Settle(3)
	require.Zero(t, b.Stored())
	require.False(t, b.TryAcquire(1))
	b.Waits(most, s)
	b.Waits(most, 2*s)
	b.Waits(1, 3*s)
	b.Advance(3 * s)
	require.Equal(t, float64(most-1), b.Stored())

	require.NoError(t, b.SetRate(math.Inf(1)))
	for range 3 {
		require.True(t, b.TryAcquire(most))
	}
	require.NoError(t, b.SetRate(most))
	b.Waits(1, s)
}

// However much was used, it can be saved and restored.
func TestLargestNumbersSaved(t *testing.T) {
	clock := clockwork.NewFakeClock()
	policy := reserve.Must(window.Policy(4, time.Second, reserve.WithClock(clock)))
	l := policy.Limiter()
	for range 3 {
		r := reserve.Must(l.Reserve(ctx, 1))
		r.Settle(math.MaxInt)
		state, err := l.AppendBinary(nil)
		require.NoError(t, err)
		l, err = policy.Restore(state)
		require.NoError(t, err)
		require.Zero(t, l.Stored())
		require.False(t, l.TryAcquire(1))
		clock.Advance(time.Millisecond)
	}
	clock.Advance(time.Minute)
	require.Equal(t, 4., l.Stored())
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
		{n: 100, per: 60, want: "window: per is 60ns; want at least a microsecond, as in 60*time.Second"},
		{n: 1, per: -s, want: "window: per is -1s; want at least a microsecond, as in 60*time.Second"},
		{n: 1, per: s, opts: []reserve.Option{pace.WithBurst(s)}, want: "window: WithBurst does not apply to a window"},
		{n: 1, per: s, opts: []reserve.Option{reserve.PayUpfront()}, want: "window: PayUpfront does not apply to a window"},
		{n: 1, per: s, opts: []reserve.Option{reserve.WithStored(1)}, want: "window: WithStored does not apply to a window"},
		{n: 1, per: s, opts: []reserve.Option{reserve.WithClock(nil)}, want: "pace: WithClock is <nil>; want a clock"},
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
}
