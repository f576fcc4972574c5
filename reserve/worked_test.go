package reserve_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

var ctx = context.Background()

// sleep advances the clock by what a reservation has to wait.
func sleep(b *limitertest.Bench, n int) time.Duration {
	d := b.Take(n).Delay()
	b.Advance(d)
	return d
}

func TestPrepayment(t *testing.T) {
	b := limitertest.Bursty(t, 1)
	b.Waits(8, 0)
	b.Waits(1, 8*s)
	require.Equal(t, 9*s, b.FreeIn())
}

func TestBurstyStoresASecondsWorth(t *testing.T) {
	b := limitertest.Bursty(t, 5)
	b.Advance(3 * s)
	require.Equal(t, 5.0, b.Stored())
	for range 6 {
		b.Waits(1, 0)
	}
	b.Waits(1, 200*ms)
}

func TestWithBurstAndCapacity(t *testing.T) {
	for name, tt := range map[string]struct {
		opts              []reserve.Option
		stored, atTenFold float64
	}{
		"default":    {nil, 10, 100},
		"burst 2 s":  {[]reserve.Option{pace.WithBurst(2 * s)}, 20, 200},
		"burst 0":    {[]reserve.Option{pace.WithBurst(0)}, 0, 0},
		"capacity":   {[]reserve.Option{pace.WithCapacity(7.5)}, 7.5, 7.5},
		"capacity 0": {[]reserve.Option{pace.WithCapacity(0)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := limitertest.Bursty(t, 10, tt.opts...)
			require.Zero(t, b.Stored())
			b.Advance(time.Hour)
			require.Equal(t, tt.stored, b.Stored())
			require.NoError(t, b.SetRate(100))
			require.Equal(t, tt.atTenFold, b.Stored(), "scaled with the capacity")
		})
	}
}

func TestWithStored(t *testing.T) {
	require.Equal(t, 3.5, limitertest.Bursty(t, 10, reserve.WithStored(3.5)).Stored())
	require.Equal(t, 10.0, limitertest.Bursty(t, 10, reserve.WithStored(math.Inf(1))).Stored(), "cut to the capacity")
	require.Equal(t, 8.0, limitertest.WarmingUp(t, 2, 4*s).Stored(), "cold")
	b := limitertest.WarmingUp(t, 2, 4*s, reserve.WithStored(0))
	b.Waits(1, 0)
	b.Waits(1, 500*ms) // warm
}

func TestWarmUp(t *testing.T) {
	b := limitertest.WarmingUp(t, 2, 4*s)
	var waits []time.Duration
	for range 8 {
		waits = append(waits, sleep(b, 1))
	}
	require.Equal(t, []time.Duration{0, 1375 * ms, 1125 * ms, 875 * ms, 625 * ms, 500 * ms, 500 * ms, 500 * ms}, waits)
}

// From any state, for every cold factor, an idle time of the period makes it cold.
func TestWarmUpIsColdAfterAPeriod(t *testing.T) {
	for _, factor := range []float64{1, 1.5, 2, 3, 10, 1000} {
		for used := range 30 {
			b := limitertest.WarmingUp(t, 2, 4*s, warmup.WithColdFactor(factor))
			cold := b.Stored()
			b.Waits(1, 0)
			for range used {
				sleep(b, 1)
			}
			b.Advance(b.FreeIn()) // pays the debt
			b.Advance(4*s - 1)
			if used > 10 {
				require.Less(t, b.Stored(), cold)
			}
			b.Advance(1)
			require.InEpsilon(t, cold, b.Stored(), 1e-9, "factor %v after %d", factor, used)
		}
	}
}

func TestUpfront(t *testing.T) {
	b := limitertest.Bursty(t, 10, pace.WithCapacity(5), reserve.WithStored(5), reserve.PayUpfront())
	b.Waits(3, 0)
	b.Waits(2, 0)
	b.Waits(1, 100*ms)
	b.Waits(20, 2100*ms) // more than the capacity: waits for what is missing
	require.Equal(t, 2200*ms, b.FreeIn())
	b.Advance(2100*ms + 300*ms)
	require.InDelta(t, 3, b.Stored(), 1e-9)
	require.False(t, b.TryAcquire(4))
	require.True(t, b.TryAcquire(3))
}

func TestSetRateKeepsTheDebtAndScalesTheStore(t *testing.T) {
	b := limitertest.Bursty(t, 1)
	b.Waits(8, 0)
	require.NoError(t, b.SetRate(2))
	require.Equal(t, 2.0, b.Rate())
	b.Waits(1, 8*s)
	b.Waits(1, 8*s+s/2)
}

func TestInfiniteRate(t *testing.T) {
	inf := math.Inf(1)
	for name, tt := range map[string]struct {
		b    *limitertest.Bench
		full float64 // after the rate is finite again
	}{
		"bursty":   {limitertest.Bursty(t, 5), 5},
		"burst 0":  {limitertest.Bursty(t, 5, pace.WithBurst(0)), 0},
		"capacity": {limitertest.Bursty(t, 5, pace.WithCapacity(3)), 3},
		"upfront":  {limitertest.Bursty(t, 5, reserve.PayUpfront(), reserve.WithStored(5)), 5},
		"warm-up":  {limitertest.WarmingUp(t, 5, s), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := tt.b
			r := b.Waits(1, 0)
			require.NoError(t, b.SetRate(inf))
			require.Equal(t, inf, b.Rate())
			b.Advance(b.FreeIn())
			for range 100 {
				b.Waits(math.MaxInt, 0)
				require.True(t, b.TryAcquire(math.MaxInt))
			}
			free := b.Waits(math.MaxInt, 0)
			require.NoError(t, b.SetRate(5))
			require.Equal(t, tt.full, b.Stored())
			free.Cancel()
			r.Cancel() // both from before: no time to give back
			if name == "warm-up" {
				tt.full = 1 // but the permit that made the limiter warmer
			}
			require.Equal(t, tt.full, b.Stored())
			require.Zero(t, b.FreeIn()/s)
		})
	}
}

func TestRefusal(t *testing.T) {
	b := limitertest.Bursty(t, 1, reserve.WithMaxWait(20*s))
	b.Waits(8, 0)
	for name, tt := range map[string]struct {
		maxWait, want time.Duration
	}{
		"shorter":     {8*s - 1, 8*s - 1},
		"zero":        {0, 0},
		"negative":    {-5 * s, 0},
		"very":        {math.MinInt64, 0},
		"microsecond": {time.Microsecond, time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := b.ReserveWithin(ctx, 1, tt.maxWait)
			var refused *reserve.WaitError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, &reserve.WaitError{Wait: 8 * s, MaxWait: tt.want}, refused)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			require.False(t, refused.Timeout())
			require.Equal(t, 8*s, b.FreeIn(), "nothing was taken")
			require.Zero(t, r.Permits())
			r.Cancel()
			require.ErrorIs(t, r.Wait(ctx), reserve.ErrCancelled)
			require.Equal(t, 8*s, b.FreeIn())
		})
	}
	r, err := b.ReserveWithin(ctx, 20, 8*s) // just fits
	require.NoError(t, err)
	require.Equal(t, 8*s, r.Delay())
	_, err = b.Reserve(ctx, 1)
	require.EqualError(t, err, "pace: a wait of 28s is longer than the longest allowed, 20s")
	_, err = b.Acquire(ctx, 1)
	require.Equal(t, &reserve.WaitError{Wait: 28 * s, MaxWait: 20 * s}, err)
}

// The deadline is read on the limiter's clock, and known before anything is taken.
func TestDeadline(t *testing.T) {
	b := limitertest.Bursty(t, 1)
	b.Waits(8, 0)
	soon, cancel := clockwork.WithDeadline(ctx, b.FakeClock, b.Now().Add(3*s))
	defer cancel()
	for name, request := range map[string]func() error{
		"Reserve": func() error { _, err := b.Reserve(soon, 1); return err },
		"Acquire": func() error { _, err := b.Acquire(soon, 1); return err },
		"Wait":    func() error { return b.Wait(soon) },
		"any":     func() error { _, err := reserve.Acquire(soon, b.Limiter, 1); return err },
		"All":     func() error { _, err := reserve.Acquire(soon, reserve.All(b.Limiter), 1); return err },
	} {
		err := request()
		require.Equal(t, &reserve.WaitError{Wait: 8 * s, MaxWait: 3 * s, Cause: context.DeadlineExceeded}, err, name)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "pace: a wait of 8s would pass the deadline, 3s from now")
		require.True(t, err.(interface{ Timeout() bool }).Timeout())
		require.Equal(t, 8*s, b.FreeIn())
	}
	// A deadline that lies in the past on this clock can't be made without a wait either.
	b.Advance(8 * s)
	past, cancel := context.WithDeadline(ctx, b.Now().Add(-s))
	defer cancel()
	if past.Err() == nil {
		_, err := b.Reserve(past, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

func TestContextThatIsDone(t *testing.T) {
	b := limitertest.Bursty(t, 1)
	gone, cancel := context.WithCancelCause(ctx)
	cancel(errGone)
	_, err := b.Reserve(gone, 1)
	require.Equal(t, errGone, err)
	_, err = b.Acquire(gone, 1)
	require.Equal(t, errGone, err)
	_, err = reserve.All(b.Limiter).ReserveWithin(gone, 1, 0)
	require.Equal(t, errGone, err)
	r := b.Waits(1, 0)
	require.Equal(t, errGone, r.Wait(gone))
	require.Zero(t, b.FreeIn(), "given back")
}

// More callers than are remembered one by one, in any order.
func TestAThousandGrantedAtOnceAndCancelled(t *testing.T) {
	b := limitertest.Bursty(t, 1000, reserve.WithStored(1000))
	held := make([]*reserve.Reservation, 1000)
	for i := range held {
		held[i] = b.Waits(1, 0)
	}
	b.Waits(1, 0) // this one goes, so that the others are not at the end of the queue
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	for _, r := range held {
		r.Cancel()
	}
	b.Advance(ms)
	require.InDelta(t, 1000, b.Stored(), 1e-9)
}

// Setting the rate that it has changes nothing, however often.
func TestSetRateToTheSame(t *testing.T) {
	b := limitertest.Bursty(t, 1, pace.WithCapacity(100))
	r := b.Waits(60, 0)
	for range 30 {
		b.Advance(s)
		require.NoError(t, b.SetRate(1))
	}
	r.Cancel()
	require.InDelta(t, 30, b.Stored(), 1e-9)
}

// What the carry holds is never more than what is stored.
func TestCarryIsNoDebtOfTheStore(t *testing.T) {
	b := limitertest.Bursty(t, 7e8, pace.WithCapacity(1))
	var held []*reserve.Reservation
	for _, n := range []int{1, 1, 1, 1, 3} {
		r, err := b.Reserve(ctx, n)
		require.NoError(t, err)
		held = append(held, &r)
	}
	held[4].Cancel()
	_, _ = b.Reserve(ctx, 2)
	held[1].Cancel()
	_, _ = b.Reserve(ctx, 1)
	for range 20 {
		b.Advance(1)
		require.GreaterOrEqual(t, b.Stored(), 0.0)
	}
}

func TestWaitTakesOne(t *testing.T) {
	b := limitertest.Bursty(t, 10)
	require.NoError(t, b.Wait(ctx))
	require.Equal(t, 100*ms, b.FreeIn())
	require.True(t, limitertest.TokenBucket(t, 10, 1).Allow())
}

func TestNothingIsSavedUpWithoutLimitEither(t *testing.T) {
	b := limitertest.Bursty(t, math.Inf(1), pace.WithBurst(0))
	require.Zero(t, b.Stored())
	require.Zero(t, b.Snapshot().Capacity)
	require.NoError(t, b.SetRate(10))
	require.Zero(t, b.Stored())
}
