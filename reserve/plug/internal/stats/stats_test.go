package stats_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/internal/watchdog"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/plug/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func value(s *stats.Set, name string) float64 {
	for _, sample := range s.Samples() {
		if sample.Prometheus == name {
			return sample.Value
		}
	}
	return -1
}

// A pause, callers that wait, and how long they did.
func TestLimiterInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, set := reserve.Must(pace.NewBursty(1, pace.WithBurst(0))), new(stats.Set)
		require.NoError(t, set.Limiter("a", l))
		require.NoError(t, l.Wait(t.Context()))
		l.PauseUntil(time.Now().Add(3 * time.Second))
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { _ = l.Wait(t.Context()) })
		}
		synctest.Wait()
		require.Equal(t, 3., value(set, "pace_limiter_pause_seconds"))
		require.Equal(t, 2., value(set, "pace_limiter_waiting_callers"))
		require.Equal(t, 3., value(set, "pace_limiter_debt_permits"))
		all.Wait()
		require.Equal(t, 0., value(set, "pace_limiter_pause_seconds"))
		require.Equal(t, 0., value(set, "pace_limiter_waiting_callers"))
		require.Equal(t, 9., value(set, "pace_limiter_waited_seconds_total"))
	})
}

// Sources that come and look at the same time.
func TestTogether(t *testing.T) {
	watchdog.Start(t)
	set := new(stats.Set)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := string(rune('a' + i))
			require.NoError(t, set.Limiter(name, reserve.Must(pace.NewBursty(1))))
			hooks, err := set.Outbound(name, outbound.Hooks{}, nil)
			require.NoError(t, err)
			for range 100 {
				hooks.Waited(nil, time.Second)
				set.Samples()
			}
		})
	}
	all.Wait()
	set.Histograms(func(_ string, h stats.Histogram) {
		require.Equal(t, uint64(100), h.Count)
		require.InDelta(t, 100, h.Sum, 1e-9)
		require.Equal(t, uint64(0), h.UpTo[.5])
		require.Equal(t, uint64(100), h.UpTo[1])
		require.Len(t, h.UpTo, len(stats.Bounds))
	})
}

// What a hook counts costs a request no allocation.
func TestHooksAllocateNothing(t *testing.T) {
	hooks, err := new(stats.Set).Outbound("a", outbound.Hooks{}, nil)
	require.NoError(t, err)
	r := &http.Request{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		hooks.Waited(r, time.Minute)
		hooks.Refused(r, nil)
		hooks.Settled(r, "", 1, 2)
	}))
}

// Servers that want very long pauses, again and again, make no counter fall.
func TestLongPauses(t *testing.T) {
	set := new(stats.Set)
	hooks, err := set.Outbound("a", outbound.Hooks{}, nil)
	require.NoError(t, err)
	const month = 32 * 24 * time.Hour
	for range 4000 {
		hooks.Throttled(nil, "", month)
		hooks.Waited(nil, month)
	}
	require.Equal(t, 4000*float64(month/time.Second), value(set, "pace_outbound_retry_after_seconds_total"))
	set.Histograms(func(_ string, h stats.Histogram) {
		require.Equal(t, 4000*float64(month/time.Second), h.Sum)
	})
}

// Nor do callers that wait for more than 292 years together.
func TestLongWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, set := reserve.Must(pace.NewBursty(1e9)), new(stats.Set)
		require.NoError(t, set.Limiter("a", l))
		const century = 36500 * 24 * time.Hour
		l.PauseUntil(time.Now().Add(century))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _ = l.Wait(t.Context()) })
		}
		all.Wait()
		require.InEpsilon(t, 4*float64(century/time.Second), value(set, "pace_limiter_waited_seconds_total"), 1e-6)
	})
}

// A middleware's waits are shown as they were.
func TestQueueWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := new(stats.Set)
		m, err := inbound.New([]inbound.Tier{inbound.Global("global", reserve.Must(pace.Bursty(1, pace.WithBurst(0))))},
			inbound.WithQueue(time.Minute, 3))
		require.NoError(t, err)
		require.NoError(t, set.Inbound("api", m))
		h := m.Handler(http.NotFoundHandler())
		for range 4 {
			go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		set.Histograms(func(name string, h stats.Histogram) {
			require.Equal(t, "api", name)
			require.Equal(t, stats.QueueWaits, h.Family)
			require.Equal(t, uint64(3), h.Count)
			require.Equal(t, 6.0, h.Sum)
			require.Equal(t, uint64(0), h.UpTo[.5])
			require.Equal(t, uint64(1), h.UpTo[1])
			require.Equal(t, uint64(2), h.UpTo[2.5])
			require.Equal(t, uint64(3), h.UpTo[60])
		})
		require.Equal(t, 4.0, value(set, "pace_inbound_allowed_requests_total"))
		require.Equal(t, 6.0, value(set, "pace_inbound_waited_seconds_total"))
	})
}
