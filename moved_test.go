package pace_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/window"
	"github.com/nextfree/pace/warmup"
)

func TestRetime(t *testing.T) {
	t.Run("those who wait scale, in order", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithBurst(0))
		s.reserve(4)
		first, second := s.reserve(2), s.reserve(1)
		s.clock.Advance(200 * ms)
		require.NoError(t, s.limiter.Retime(20))
		require.Equal(t, 300*ms, s.at(first))
		require.Equal(t, 400*ms, s.at(second))
		require.Equal(t, 450*ms, s.nextFree())
		require.NoError(t, s.limiter.Retime(5))
		require.Equal(t, 600*ms, s.at(first))
		require.Equal(t, 1000*ms, s.at(second))
		require.Equal(t, 5.0, s.limiter.Rate())
	})
	t.Run("after a much lower rate nobody is left waiting", func(t *testing.T) {
		s := burstyScene(t, 10)
		require.NoError(t, s.limiter.SetRate(0.01))
		s.reserve(1)
		waits := s.reserve(1)
		require.Equal(t, 100*time.Second, s.at(waits))
		require.NoError(t, s.limiter.Retime(100))
		require.Equal(t, 10*ms, s.at(waits))
		require.Equal(t, 20*ms, s.nextFree())
	})
	t.Run("what may come back scales too", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithBurst(0))
		gone, waits := s.reserve(10), s.reserve(1)
		require.NoError(t, s.limiter.Retime(100))
		require.Equal(t, 100*ms, s.at(waits))
		gone.Settle(5)
		require.Equal(t, 50*ms, s.at(waits))
	})
	t.Run("with nothing owed it is SetRate", func(t *testing.T) {
		s := burstyScene(t, 10, reserve.WithStored(6))
		require.NoError(t, s.limiter.Retime(20))
		require.InDelta(t, 12, s.limiter.Stored(), 1e-6)
	})
	t.Run("bad rates change nothing", func(t *testing.T) {
		s := burstyScene(t, 10)
		for _, rate := range []float64{0, -1} {
			var bad *reserve.ValueError
			require.ErrorAs(t, s.limiter.Retime(rate), &bad)
		}
		require.Equal(t, 10.0, s.limiter.Rate())
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
		s := burstyScene(t, 10)
		s.reserve(1)
		before := s.reserve(1)
		s.clock.Advance(50 * ms)
		s.pause(time.Hour)
		during := s.reserve(1)
		s.clock.Advance(time.Second)
		s.limiter.Resume()
		require.Equal(t, 1100*ms, s.at(before))
		require.Equal(t, 1200*ms, s.at(during))
		require.Equal(t, 1300*ms, s.nextFree())
		s.limiter.Resume()
		require.Equal(t, 1100*ms, s.at(before), "there is no pause")
		s.pause(100 * ms)
		require.Equal(t, 1200*ms, s.at(before), "another one")
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
	t.Run("the store scales, and the rate is new", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithCapacity(10), reserve.WithStored(5))
		p := reserve.Must(pace.Bursty(20, pace.WithCapacity(40), reserve.WithClock(s.clock)))
		require.NoError(t, s.limiter.SetPolicy(p))
		require.Equal(t, 20.0, s.limiter.Rate())
		require.InDelta(t, 20, s.limiter.Stored(), 1e-6)
		s.clock.Advance(10 * time.Second)
		require.InDelta(t, 40, s.limiter.Stored(), 1e-6)
	})
	t.Run("what is promised stays, and can be settled", func(t *testing.T) {
		s := burstyScene(t, 10, pace.WithBurst(0))
		s.reserve(5)
		first, second := s.reserve(2), s.reserve(1)
		p := reserve.Must(pace.Bursty(100, pace.WithCapacity(3), reserve.WithClock(s.clock)))
		require.NoError(t, s.limiter.SetPolicy(p))
		require.Equal(t, 500*ms, s.at(first))
		require.Equal(t, 700*ms, s.at(second))
		first.Settle(1)
		require.Equal(t, 600*ms, s.at(second))
		second.Cancel()
		require.Equal(t, 600*ms, s.nextFree())
	})
	t.Run("its longest wait holds", func(t *testing.T) {
		s := burstyScene(t, 10)
		s.reserve(5)
		p := reserve.Must(pace.Bursty(10, reserve.WithMaxWait(100*ms), reserve.WithClock(s.clock)))
		require.NoError(t, s.limiter.SetPolicy(p))
		_, err := s.limiter.Reserve(t.Context(), 1)
		var refused *reserve.WaitError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, 500*ms, refused.Wait)
		require.Equal(t, 100*ms, refused.MaxWait)
	})
	t.Run("another kind, clock or way of paying is refused", func(t *testing.T) {
		s := burstyScene(t, 10)
		for name, p := range map[string]*reserve.Policy{
			"warm-up": reserve.Must(warmup.Policy(10, time.Second, reserve.WithClock(s.clock))),
			"window":  reserve.Must(window.Policy(10, time.Second, reserve.WithClock(s.clock))),
			"upfront": reserve.Must(pace.Bursty(20, reserve.WithClock(s.clock), reserve.PayUpfront())),
			"clock":   reserve.Must(pace.Bursty(20)),
			"none":    nil,
		} {
			require.Error(t, s.limiter.SetPolicy(p), name)
			require.Equal(t, 10.0, s.limiter.Rate(), name)
		}
	})
}

func TestNewTokenBucket(t *testing.T) {
	newBucket := func(opts ...reserve.Option) (*reserve.Limiter, error) { return pace.NewTokenBucket(10, 5, opts...) }
	s, same := newScene(t, newBucket), bucketScene(t, 10, 5)
	random := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		n := 1 + random.IntN(8)
		require.Equal(t, same.at(same.reserve(n)), s.at(s.reserve(n)))
		d := time.Duration(random.IntN(1000)) * ms
		s.clock.Advance(d)
		same.clock.Advance(d)
		require.Equal(t, same.limiter.Stored(), s.limiter.Stored())
	}
	p, err := pace.TokenBucket(10, 5, reserve.WithStored(0))
	require.NoError(t, err)
	require.Zero(t, int(p.Limiter().Stored()), "an option that is given overrides")
	_, err = pace.NewTokenBucket(10, -1)
	require.Error(t, err)
}
