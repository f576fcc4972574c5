package conform

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/judge/limitertest"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

func TestRetime(t *testing.T) {
	t.Run("waiting requests scale, in order", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithBurst(0))
		s.Take(4)
		first, second := s.Take(2), s.Take(1)
		s.Advance(200 * ms)
		require.NoError(t, s.Retime(20))
		require.Equal(t, 300*ms, s.At(first))
		require.Equal(t, 400*ms, s.At(second))
		require.Equal(t, 450*ms, s.FreeAt())
		require.NoError(t, s.Retime(5))
		require.Equal(t, 600*ms, s.At(first))
		require.Equal(t, 1000*ms, s.At(second))
		require.Equal(t, 5.0, s.Rate())
	})
	t.Run("after a much lower rate no request is left waiting", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		require.NoError(t, s.SetRate(0.01))
		s.Take(1)
		waits := s.Take(1)
		require.Equal(t, 100*time.Second, s.At(waits))
		require.NoError(t, s.Retime(100))
		require.Equal(t, 10*ms, s.At(waits))
		require.Equal(t, 20*ms, s.FreeAt())
	})
	t.Run("what may come back scales too", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithBurst(0))
		gone, waits := s.Take(10), s.Take(1)
		require.NoError(t, s.Retime(100))
		require.Equal(t, 100*ms, s.At(waits))
		gone.Settle(5)
		require.Equal(t, 50*ms, s.At(waits))
	})
	t.Run("permits that are stored stay, as far as they fit", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, reserve.WithStored(6))
		require.NoError(t, s.Retime(20))
		require.InDelta(t, 6, s.Stored(), 1e-6)
		require.NoError(t, s.Retime(5))
		require.InDelta(t, 5, s.Stored(), 1e-6)
	})
	t.Run("a warming-up limiter stays as cold as it is", func(t *testing.T) {
		s := limitertest.WarmingUp(t, 10, time.Second)
		cold := s.Stored()
		require.NoError(t, s.Retime(20))
		require.InDelta(t, 2*cold, s.Stored(), 1e-6)
	})
	t.Run("a refund is worth the same before and after", func(t *testing.T) {
		var left [2]float64
		for i := range left { // once cancelled before Retime, once after it
			s := limitertest.Bursty(t, 5, reserve.WithStored(5))
			first, waits := s.Take(8), s.Take(4)
			if i == 0 {
				first.Cancel()
			}
			require.NoError(t, s.Retime(10))
			first.Cancel()
			require.Zero(t, waits.Delay())
			left[i] = s.Stored()
		}
		require.InDelta(t, 1, left[0], 1e-6)
		require.InDelta(t, 1, left[1], 1e-6)
	})
	t.Run("with SetRate in turn it adds no permits", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, reserve.WithStored(10))
		for range 10 {
			require.NoError(t, s.Retime(1)) // holds 1
			require.NoError(t, s.SetRate(10))
			require.InDelta(t, 1, s.Stored(), 1e-6)
		}
	})
	t.Run("bad rates change nothing", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		for _, rate := range []float64{0, -1} {
			var bad *reserve.ValueError
			require.ErrorAs(t, s.Retime(rate), &bad)
		}
		require.Equal(t, 10.0, s.Rate())
	})
	t.Run("sleepers follow", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limiter, err := pace.NewBursty(0.01)
			require.NoError(t, err)
			require.True(t, limiter.Allow())
			time.AfterFunc(time.Second, func() { require.NoError(t, limiter.Retime(100)) })
			waited, err := limiter.Acquire(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, time.Second+9900*time.Microsecond, waited)
		})
	})
}

func TestResume(t *testing.T) {
	t.Run("they go in order", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		s.Take(1)
		before := s.Take(1)
		s.Advance(50 * ms)
		s.Pause(time.Hour)
		during := s.Take(1)
		s.Advance(time.Second)
		s.Resume()
		require.Equal(t, 1100*ms, s.At(before))
		require.Equal(t, 1200*ms, s.At(during))
		require.Equal(t, 1300*ms, s.FreeAt())
		s.Resume()
		require.Equal(t, 1100*ms, s.At(before), "there is no pause")
		s.Pause(100 * ms)
		require.Equal(t, 1200*ms, s.At(before), "another one")
	})
	t.Run("sleepers wake", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limiter, err := pace.NewBursty(10)
			require.NoError(t, err)
			limiter.PauseUntil(time.Now().Add(time.Hour))
			time.AfterFunc(time.Second, limiter.Resume)
			waited, err := limiter.Acquire(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, time.Second, waited)
		})
	})
}

func TestSetPolicy(t *testing.T) {
	t.Run("permits stay, and the rate is new", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithCapacity(10), reserve.WithStored(5))
		p := reserve.Must(pace.Bursty(20, pace.WithCapacity(40), reserve.WithClock(s.FakeClock)))
		require.NoError(t, s.SetPolicy(p))
		require.Equal(t, 20.0, s.Rate())
		require.InDelta(t, 5, s.Stored(), 1e-6)
		s.Advance(10 * time.Second)
		require.InDelta(t, 40, s.Stored(), 1e-6)
	})
	t.Run("what is promised stays, and can be settled", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithBurst(0))
		s.Take(5)
		first, second := s.Take(2), s.Take(1)
		p := reserve.Must(pace.Bursty(100, pace.WithBurst(30*ms), reserve.WithClock(s.FakeClock)))
		require.NoError(t, s.SetPolicy(p))
		require.Equal(t, 500*ms, s.At(first))
		require.Equal(t, 700*ms, s.At(second))
		first.Settle(1)
		require.Equal(t, 600*ms, s.At(second))
		second.Cancel()
		require.Equal(t, 600*ms, s.FreeAt())
	})
	t.Run("with a capacity in permits, what is owed stays in permits", func(t *testing.T) {
		s := limitertest.Bursty(t, 10, pace.WithBurst(0))
		s.Take(5)
		first, second := s.Take(2), s.Take(1)
		p := reserve.Must(pace.Bursty(100, pace.WithCapacity(3), reserve.WithClock(s.FakeClock)))
		require.NoError(t, s.SetPolicy(p))
		require.Equal(t, 50*ms, s.At(first))
		require.Equal(t, 70*ms, s.At(second))
		first.Settle(1)
		require.Equal(t, 60*ms, s.At(second))
	})
	t.Run("its longest wait holds", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		s.Take(5)
		p := reserve.Must(pace.Bursty(10, reserve.WithMaxWait(100*ms), reserve.WithClock(s.FakeClock)))
		require.NoError(t, s.SetPolicy(p))
		_, err := s.Reserve(t.Context(), 1)
		var refused *reserve.WaitError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 500*ms, refused.Wait)
		require.Equal(t, 100*ms, refused.MaxWait)
	})
	t.Run("another kind, clock or way of paying is refused", func(t *testing.T) {
		s := limitertest.Bursty(t, 10)
		for name, p := range map[string]*reserve.Policy{
			"warm-up": reserve.Must(warmup.Policy(10, time.Second, reserve.WithClock(s.FakeClock))),
			"window":  reserve.Must(window.Policy(10, time.Second, reserve.WithClock(s.FakeClock))),
			"upfront": reserve.Must(pace.Bursty(20, reserve.WithClock(s.FakeClock), reserve.PayUpfront())),
			"clock":   reserve.Must(pace.Bursty(20)),
			"none":    nil,
		} {
			require.ErrorAs(t, s.SetPolicy(p), new(*reserve.ValueError), name)
			require.Equal(t, 10.0, s.Rate(), name)
		}
	})
}

func TestNewTokenBucket(t *testing.T) {
	newBucket := func(opts ...reserve.Option) (*reserve.Limiter, error) { return pace.NewTokenBucket(10, 5, opts...) }
	s, same := limitertest.New(t, newBucket), limitertest.TokenBucket(t, 10, 5)
	random := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		n := 1 + random.IntN(8)
		require.Equal(t, same.At(same.Take(n)), s.At(s.Take(n)))
		d := time.Duration(random.IntN(1000)) * ms
		s.Advance(d)
		same.Advance(d)
		require.Equal(t, same.Stored(), s.Stored())
	}
	p, err := pace.TokenBucket(10, 5, reserve.WithStored(0))
	require.NoError(t, err)
	require.Zero(t, int(p.Limiter().Stored()), "an option that is given overrides")
	_, err = pace.NewTokenBucket(10, -1)
	require.ErrorAs(t, err, new(*reserve.ValueError))
}
