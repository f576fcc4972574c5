package reserve_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/warmup"
)

func TestBadConstruction(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	newBursty := func(rate float64, opts ...reserve.Option) error {
		_, err := pace.NewBursty(rate, opts...)
		return err
	}
	newWarmUp := func(rate float64, period time.Duration, opts ...reserve.Option) error {
		_, err := warmup.New(rate, period, opts...)
		return err
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{newBursty(nan), "pace: rate is NaN; want a positive number of permits per second"},
		{newBursty(0), "pace: rate is 0; want a positive number of permits per second"},
		{newBursty(math.Copysign(0, -1)), "pace: rate is -0; want a positive number of permits per second"},
		{newBursty(-1), "pace: rate is -1; want a positive number of permits per second"},
		{newBursty(-inf), "pace: rate is -Inf; want a positive number of permits per second"},
		{newWarmUp(nan, s), "warmup: rate is NaN; want a positive number of permits per second"},
		{newWarmUp(0, s), "warmup: rate is 0; want a positive number of permits per second"},
		{newWarmUp(-5, s), "warmup: rate is -5; want a positive number of permits per second"},
		{newWarmUp(1, 10), "warmup: period is 10ns; want at least a microsecond, as in 10*time.Second"},
		{newWarmUp(1, -s), "warmup: period is -1s; want at least a microsecond, as in 10*time.Second"},
		{newBursty(1, pace.WithBurst(-1)), "pace: WithBurst is -1ns; want 0, or at least a microsecond, as in 5*time.Second"},
		{newBursty(1, pace.WithBurst(5)), "pace: WithBurst is 5ns; want 0, or at least a microsecond, as in 5*time.Second"},
		{newBursty(1, pace.WithCapacity(-1)), "pace: WithCapacity is -1; want 0 or more permits, and a finite number"},
		{newBursty(1, pace.WithCapacity(nan)), "pace: WithCapacity is NaN; want 0 or more permits, and a finite number"},
		{newBursty(1, pace.WithCapacity(inf)), "pace: WithCapacity is +Inf; want 0 or more permits, and a finite number"},
		{newBursty(1, reserve.WithStored(-1)), "pace: WithStored is -1; want 0 or more permits"},
		{newBursty(1, reserve.WithStored(nan)), "pace: WithStored is NaN; want 0 or more permits"},
		{newBursty(1, reserve.WithClock(nil)), "pace: WithClock is <nil>; want a clock"},
		{newWarmUp(1, s, warmup.WithColdFactor(nan)), "warmup: WithColdFactor is NaN; want a number of at least 1"},
		{newWarmUp(1, s, warmup.WithColdFactor(0.999)), "warmup: WithColdFactor is 0.999; want a number of at least 1"},
		{newWarmUp(1, s, warmup.WithColdFactor(inf)), "warmup: WithColdFactor is +Inf; want a number of at least 1"},
	} {
		var bad *reserve.ValueError
		require.ErrorAs(t, tt.err, &bad)
		require.EqualError(t, tt.err, tt.want)
	}
	for _, tt := range []struct {
		err  error
		want reserve.OptionError
	}{
		{newWarmUp(1, s, pace.WithBurst(s)), reserve.OptionError{Package: "warmup", Option: "WithBurst", Limiter: "a warming-up limiter"}},
		{newWarmUp(1, s, pace.WithCapacity(1)), reserve.OptionError{Package: "warmup", Option: "WithCapacity", Limiter: "a warming-up limiter"}},
		{newBursty(1, warmup.WithColdFactor(2)), reserve.OptionError{Package: "pace", Option: "WithColdFactor", Limiter: "a bursty limiter"}},
	} {
		require.Equal(t, &tt.want, tt.err)
	}
	require.EqualError(t, newWarmUp(1, s, pace.WithBurst(s)), "warmup: WithBurst does not apply to a warming-up limiter")
	require.EqualError(t, newBursty(1, reserve.Option{}), "pace: the zero Option does not apply to a bursty limiter")
	require.EqualError(t, newBursty(reserve.Per(100, 0)), "pace: rate is NaN; want a positive number of permits per second")
	require.PanicsWithError(t, "pace: rate is -1; want a positive number of permits per second", func() {
		reserve.Must(pace.NewBursty(-1))
	})
}

// A bad request or rate leaves the limiter as it was.
func TestBadRequests(t *testing.T) {
	for name, b := range map[string]*limitertest.Bench{"bursty": limitertest.Bursty(t, 10), "warm-up": limitertest.WarmingUp(t, 10, s)} {
		t.Run(name, func(t *testing.T) {
			b.Advance(300 * ms)
			b.Waits(7, 0)
			stored, next := b.Stored(), b.FreeIn()
			for n, want := range map[int]string{
				0:           "pace: permits is 0; want at least 1",
				-1:          "pace: permits is -1; want at least 1",
				math.MinInt: fmt.Sprintf("pace: permits is %d; want at least 1", math.MinInt),
			} {
				_, err := b.Reserve(ctx, n)
				require.EqualError(t, err, want)
				_, err = b.ReserveWithin(ctx, n, s)
				require.EqualError(t, err, want)
				_, err = b.Acquire(ctx, n)
				require.EqualError(t, err, want)
				_, err = reserve.All(b.Limiter).ReserveWithin(ctx, n, s)
				require.EqualError(t, err, want)
				require.IsType(t, &reserve.ValueError{}, err)
				require.False(t, b.TryAcquire(n))
			}
			for _, rate := range []float64{0, -1, math.NaN(), math.Inf(-1), math.Copysign(0, -1)} {
				err := b.SetRate(rate)
				var bad *reserve.ValueError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, "pace", bad.Package)
				require.Contains(t, err.Error(), "want a positive number of permits per second")
			}
			require.Equal(t, stored, b.Stored())
			require.Equal(t, next, b.FreeIn())
			require.Equal(t, 10.0, b.Rate())
		})
	}
}

// What is nil is reported where it is given.
func TestNil(t *testing.T) {
	l := reserve.Must(pace.NewBursty(1))
	for want, make := range map[string]func(){
		"pace: a limiter of All is <nil>; want a limiter":                      func() { reserve.All(l, nil) },
		"pace: a limiter of All is <nil>; want a limiter ":                     func() { reserve.All((*reserve.Limiter)(nil)) },
		"pace: NewReservation's promise is <nil>; want a promise":              func() { reserve.NewReservation(nil) },
		"pace: WithClock is <nil>; want a clock":                               func() { reserve.Must(pace.NewBursty(1, reserve.WithClock(nil))) },
		"pace: WithClock is <nil>; want a clock ":                              func() { reserve.Must(pace.NewBursty(1, reserve.WithClock((*clockwork.FakeClock)(nil)))) },
		"pace: SetPolicy's policy is <nil>; want a policy of a bursty limiter": func() { reserve.Must(0, l.SetPolicy(nil)) },
		`pace: SetPolicy's policy is "of a bursty limiter"; want a policy that is paid in the same way`: func() {
			reserve.Must(0, l.SetPolicy(reserve.Must(pace.TokenBucket(5, 5))))
		},
	} {
		func() {
			defer func() { require.EqualError(t, recover().(error), strings.TrimSpace(want)) }()
			make()
		}()
	}
}

// Whatever is asked, times saturate and permits are neither minted nor NaN.
func TestExtremes(t *testing.T) {
	rates := []float64{math.SmallestNonzeroFloat64, 1e-300, 1e-18, 1e-9, 0.3, 7e8, 3e9, 1e18, 1e300, math.MaxFloat64, math.Inf(1)}
	for _, rate := range rates {
		for name, newLimiter := range map[string]func(clock reserve.Option) (*reserve.Limiter, error){
			"bursty":  func(c reserve.Option) (*reserve.Limiter, error) { return pace.NewBursty(rate, c) },
			"burst 0": func(c reserve.Option) (*reserve.Limiter, error) { return pace.NewBursty(rate, c, pace.WithBurst(0)) },
			"burst for ever": func(c reserve.Option) (*reserve.Limiter, error) {
				return pace.NewBursty(rate, c, pace.WithBurst(reserve.Forever))
			},
			"capacity": func(c reserve.Option) (*reserve.Limiter, error) {
				return pace.NewBursty(rate, c, pace.WithCapacity(math.MaxFloat64))
			},
			"upfront":         func(c reserve.Option) (*reserve.Limiter, error) { return pace.NewBursty(rate, c, reserve.PayUpfront()) },
			"warm-up":         func(c reserve.Option) (*reserve.Limiter, error) { return warmup.New(rate, s, c) },
			"warm-up 1 us":    func(c reserve.Option) (*reserve.Limiter, error) { return warmup.New(rate, time.Microsecond, c) },
			"warm-up forever": func(c reserve.Option) (*reserve.Limiter, error) { return warmup.New(rate, reserve.Forever, c) },
			"warm-up colder": func(c reserve.Option) (*reserve.Limiter, error) {
				return warmup.New(rate, s, c, warmup.WithColdFactor(math.MaxFloat64))
			},
		} {
			b := limitertest.New(t, func(o ...reserve.Option) (*reserve.Limiter, error) { return newLimiter(o[0]) })
			sane := func(what string) {
				stored := b.Stored()
				require.False(t, math.IsNaN(stored) || stored < 0, "%s at %v: stored is %v after %s", name, rate, stored, what)
				require.GreaterOrEqual(t, b.FreeIn(), time.Duration(0), "%s at %v after %s", name, rate, what)
			}
			last := time.Duration(0)
			var held []*reserve.Reservation
			for _, n := range []int{1, 3, math.MaxInt, math.MaxInt, 1, math.MaxInt32} {
				r, err := b.Reserve(ctx, n)
				require.NoError(t, err)
				require.GreaterOrEqual(t, r.Delay(), last, "%s at %v: no earlier than the one before", name, rate)
				last = r.Delay()
				held = append(held, &r)
				sane("Reserve")
			}
			for _, other := range rates {
				require.NoError(t, b.SetRate(other))
				require.Equal(t, other, b.Rate())
				sane("SetRate")
			}
			b.Advance(1000 * time.Hour)
			sane("1000 h")
			held[1].Settle(math.MaxInt)
			sane("Settle")
			for i := range held {
				held[(i*5+2)%len(held)].Cancel()
				sane("Cancel")
			}
			b.PauseUntil(b.Now().Add(math.MaxInt64))
			sane("Pause")
			r, err := b.Reserve(ctx, 1)
			require.NoError(t, err)
			require.Greater(t, r.Delay(), 200*365*24*time.Hour)
		}
	}
}

// At rates whose interval is no whole number of nanoseconds, or less than one, the
// rest is carried.
func TestRatesBeyondANanosecond(t *testing.T) {
	for _, rate := range []float64{3, 7, 1e6 + 1, 7.3e8, 1.5e9, 3e9, 1e12} {
		b := limitertest.Bursty(t, rate, pace.WithBurst(0))
		n := int(math.Min(1e5, rate))
		for range n {
			reserve1(b)
		}
		require.InDelta(t, float64(n)/rate*1e9, float64(b.FreeIn()), 2, "%v/s", rate)
		require.InDelta(t, float64(n)/rate*1e9, float64(b.FreeIn()), 2)
	}
}

func reserve1(b *limitertest.Bench) { _, _ = b.Reserve(ctx, 1) }

func TestCharge(t *testing.T) {
	b := limitertest.Bursty(t, 10)
	engineOf(b.Limiter).Charge(5)
	require.Equal(t, 500*ms, b.FreeIn())
}
