package reserve_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/calendar"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

func kindsOfPolicies() map[string]*reserve.Policy {
	return map[string]*reserve.Policy{
		"bursty":                 reserve.Must(pace.Bursty(7)),
		"bursty, slow":           reserve.Must(pace.Bursty(0.5)),
		"bursty, evenly":         reserve.Must(pace.Bursty(3, pace.WithBurst(0))),
		"upfront":                reserve.Must(pace.Bursty(7, reserve.PayUpfront())),
		"upfront, slow":          reserve.Must(pace.Bursty(reserve.Per(20, time.Minute), reserve.PayUpfront())),
		"upfront, evenly":        reserve.Must(pace.Bursty(3, pace.WithBurst(0), reserve.PayUpfront())),
		"bucket":                 reserve.Must(pace.TokenBucket(3, 5)),
		"warm-up":                reserve.Must(warmup.Policy(7, 3*time.Second)),
		"warm-up, upfront":       reserve.Must(warmup.Policy(7, 3*time.Second, reserve.PayUpfront())),
		"warm-up, short":         reserve.Must(warmup.Policy(0.5, time.Second, reserve.PayUpfront())),
		"warm-up, upfront, warm": reserve.Must(warmup.Policy(7, 3*time.Second, reserve.PayUpfront(), reserve.WithStored(0))),
		"window":                 reserve.Must(window.Policy(5, time.Second)),
		"calendar":               reserve.Must(calendar.Policy(5, calendar.Every(time.Second))),
		"from the first":         reserve.Must(calendar.Policy(5, calendar.FromFirst(time.Second))),
		"spread":                 reserve.Must(calendar.Policy(5, calendar.Every(time.Second), calendar.Spread(2))),
	}
}

// What is told is what a poll finds: asked again at that moment, the request is granted, at any rate.
func TestToldAndAskedAgain(t *testing.T) {
	for name, p := range kindsOfPolicies() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := rand.New(rand.NewPCG(1, 2)), p.Limiter()
				for range 300 {
					if !l.TryAcquire(1) {
						wait, err := l.Peek(1)
						require.NoError(t, err)
						require.Positive(t, wait)
						time.Sleep(wait)
						require.True(t, l.TryAcquire(1), "told %v", wait)
					}
					if r.IntN(10) == 0 {
						require.NoError(t, l.SetRate(0.2+10*r.Float64()))
					}
					if r.IntN(3) == 0 {
						time.Sleep(time.Duration(r.ExpFloat64() * 1e9))
					}
				}
			})
		})
	}
}

// A permit of a warming-up limiter that was reserved long ago is worth nothing: it would have overflowed.
func TestALateCancelMakesNoWarmLimiterColder(t *testing.T) {
	var took [2]time.Duration
	for i := range took {
		synctest.Test(t, func(t *testing.T) {
			l := reserve.Must(warmup.New(2, 4*time.Second))
			old, err := l.Reserve(t.Context(), 8)
			require.NoError(t, err)
			time.Sleep(100 * time.Second)
			require.True(t, l.TryAcquire(8)) // warm
			if i == 1 {
				old.Cancel()
			}
			begin := time.Now()
			for range 9 {
				require.NoError(t, l.Wait(t.Context()))
			}
			took[i] = time.Since(begin)
		})
	}
	require.Equal(t, took[0], took[1])
}

// However much is reserved, it comes back whole, also where its time has no end.
func TestAHugeReservationComesBack(t *testing.T) {
	month := 30 * 24 * time.Hour
	for name, p := range map[string]*reserve.Policy{
		"bursty": reserve.Must(pace.Bursty(1 << 20)), "evenly": reserve.Must(pace.Bursty(1<<20, pace.WithBurst(0))),
		"warm-up": reserve.Must(warmup.Policy(1<<20, time.Minute)), "bucket": reserve.Must(pace.TokenBucket(1<<20, 1<<20)),
		"slow": reserve.Must(pace.Bursty(reserve.Per(10, month))), "upfront": reserve.Must(pace.Bursty(reserve.Per(10, month), reserve.PayUpfront())),
	} {
		for _, n := range []int{1000, 20_000, math.MaxInt >> 23, math.MaxInt / 2, math.MaxInt} {
			for _, kept := range []int{0, 7} {
				synctest.Test(t, func(t *testing.T) {
					l, without := p.Limiter(), p.Limiter()
					r, err := l.Reserve(t.Context(), n)
					require.NoError(t, err)
					if kept > 0 {
						_, err = without.Reserve(t.Context(), kept)
						require.NoError(t, err)
					}
					r.Settle(kept)
					require.InDelta(t, time.Until(without.NextFree()), time.Until(l.NextFree()), 1, "%s, %d, %d kept", name, n, kept)
				})
			}
		}
	}
}

// Where nobody waits, more than a bucket ever holds is too large; where somebody does, it waits for what is missing.
func TestMoreThanIsEverThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := reserve.Must(pace.NewTokenBucket(1, 5))
		var large *reserve.SizeError
		_, err := l.ReserveWithin(t.Context(), 8, 0)
		require.ErrorAs(t, err, &large)
		require.False(t, l.TryAcquire(8))
		r, err := l.Reserve(t.Context(), 8)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, r.Delay())
	})
}
