package conform

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
)

// The smallest programs in which a change of rate once minted permits: while a request waited, or
// something was owed, a positive level kept its time and not its permits.
func TestRatesMintNothing(t *testing.T) {
	t.Run("a waiting request is cancelled", func(t *testing.T) {
		s := limitertest.TokenBucket(t, 5, 2)
		require.True(t, s.TryAcquire(1))
		waits := s.Take(2)
		require.NoError(t, s.SetRate(6.05))
		waits.Cancel()
		s.Waits(2, 165289257) // 1 is stored, and 1 at 6.05/s is missing
	})
	t.Run("TestReserveSetLimitCancel of golang.org/x/time/rate", func(t *testing.T) {
		s := limitertest.TokenBucket(t, 5, 2)
		require.True(t, s.TryAcquire(2))
		second := s.Waits(2, 400*ms)
		s.Advance(200 * ms)
		require.NoError(t, s.SetRate(10))
		second.Cancel() // it has collected 1
		s.Waits(2, 100*ms)
	})
	t.Run("a granted request is cancelled, upfront", func(t *testing.T) {
		s := limitertest.TokenBucket(t, 5, 10)
		s.Take(8)
		first := s.Waits(3, 200*ms)
		require.NoError(t, s.SetRate(20))
		s.Take(3)
		first.Cancel() // 2 of its 3 were stored: with 1 s.Waits until 1 more has come
		require.Zero(t, s.Stored())
		s.Waits(1, 100*ms)
	})
	t.Run("a granted request is cancelled, paid later", func(t *testing.T) {
		s := limitertest.Bursty(t, 5, pace.WithCapacity(10), reserve.WithStored(10))
		s.Take(8)
		second := s.Waits(3, 0) // 200 ms of debt
		require.NoError(t, s.SetRate(20))
		third := s.Waits(3, 50*ms)
		second.Cancel() // 2 are stored: the third may go, and owe 1
		require.Zero(t, third.Delay())
		s.Waits(1, 50*ms)
	})
	for name, change := range map[string]func(s *limitertest.Bench) error{
		"SetRate": func(s *limitertest.Bench) error { return s.SetRate(20) },
		"SetPolicy": func(s *limitertest.Bench) error {
			return s.SetPolicy(reserve.Must(pace.Bursty(20, pace.WithCapacity(10), reserve.WithClock(s.FakeClock))))
		},
	} {
		t.Run("nothing is given back, in a pause: "+name, func(t *testing.T) {
			s := limitertest.Bursty(t, 5, pace.WithCapacity(10), reserve.WithStored(10))
			s.Pause(time.Second)
			s.Waits(5, time.Second)
			require.NoError(t, change(s))
			s.Waits(6, time.Second)
			s.Waits(1, 1050*ms) // 5 + 6 are one more than there were
		})
	}
	t.Run("larger than the store, settled at less", func(t *testing.T) {
		s := limitertest.Bursty(t, 5, pace.WithBurst(300*ms), reserve.PayUpfront())
		large := s.Waits(6, 1200*ms)
		s.Advance(500 * ms)
		require.NoError(t, s.SetRate(6.25))
		s.Advance(200 * ms)
		large.Settle(1) // it goes, and leaves 300 ms less the 200 ms of its own
		require.Zero(t, large.Delay())
		s.Waits(1, 60*ms)
	})
	t.Run("larger than the store when it was granted, settled at less when the store is larger", func(t *testing.T) {
		s := limitertest.Bursty(t, 4, pace.WithBurst(time.Second), reserve.PayUpfront())
		large := s.Waits(4, time.Second)
		require.NoError(t, s.Retime(2))
		s.Advance(2 * time.Second) // it goes, where the store holds 2
		require.NoError(t, s.Retime(4))
		large.Settle(1)
		require.InDelta(t, 1, s.Stored(), 1e-6)
	})
	t.Run("larger than the store for a moment, cancelled when granted", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithBurst(300*ms), reserve.WithStored(2), reserve.PayUpfront())
		large := s.Waits(3, 100*ms)
		require.NoError(t, s.Retime(5)) // the store holds 1.5
		require.NoError(t, s.Retime(10))
		s.Advance(100 * ms)
		large.Cancel()
		require.LessOrEqual(t, s.Stored(), 2.5)
	})
	t.Run("at a lower rate one permit is as much time as many that wait since before", func(t *testing.T) {
		s := limitertest.Bursty(t, 1, pace.WithBurst(2*time.Second), reserve.PayUpfront())
		large := s.Waits(40, 40*time.Second)
		second, third := s.Waits(4, 44*time.Second), s.Waits(6, 50*time.Second)
		require.NoError(t, s.SetRate(0.1)) // its store is a permit, 10 s
		s.Advance(39 * time.Second)
		large.Cancel()
		require.Zero(t, second.Delay())
		require.Equal(t, 6*time.Second, third.Delay())
	})
	t.Run("collected at a higher rate, left at a lower one", func(t *testing.T) {
		s := limitertest.TokenBucket(t, 10, 10)
		s.Take(9)
		first := s.Waits(2, 100*ms)
		require.NoError(t, s.SetRate(20))
		second := s.Waits(2, 150*ms)
		require.NoError(t, s.SetRate(5))
		first.Cancel() // 1 is stored, and 1 at 5/s is missing
		require.Equal(t, 200*ms, second.Delay())
	})
}

// A waiting request that has collected 9.99 of its 10 permits leaves these.
func TestRatesLoseNothing(t *testing.T) {
	s := limitertest.TokenBucket(t, 1, 10)
	require.True(t, s.TryAcquire(10))
	waits := s.Waits(10, 10*time.Second)
	s.Advance(9990 * ms)
	require.NoError(t, s.SetRate(100))
	require.Equal(t, 100*time.Microsecond, waits.Delay())
	waits.Cancel()
	require.InDelta(t, 9.99, s.Stored(), 1e-6)
}

// Swings between two rates, each with a request that is given back, mint nothing and lose nothing.
func TestSwings(t *testing.T) {
	const capacity = 10
	for _, upfront := range []bool{false, true} {
		for _, how := range []string{"granted", "waiting"} {
			for _, by := range []float64{1.1, 1.5, 2, 4, 20, 100} {
				t.Run(fmt.Sprintf("%s, %v times, upfront %v", how, by, upfront), func(t *testing.T) {
					opts := []reserve.Option{pace.WithCapacity(capacity), reserve.WithStored(capacity)}
					if upfront {
						opts = append(opts, reserve.PayUpfront())
					}
					s := limitertest.Bursty(t, 1, opts...)
					s.Take(5)
					rates := [2]float64{1, by}
					for i := range 200 {
						var r, behind *reserve.Reservation
						if how == "granted" {
							r = s.Take(3) // of 5
						} else {
							s.Pause(time.Minute)
							r, behind = s.Take(7), s.Take(1)
						}
						require.NoError(t, s.SetRate(rates[(i+1)%2]))
						r.Cancel()
						if behind != nil {
							behind.Cancel()
							s.Resume()
						}
						require.InDelta(t, 5, s.Stored(), 1e-6, "swing %d", i)
					}
				})
			}
		}
	}
}
