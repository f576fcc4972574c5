// Package statstest fills an exporter with one source of each kind, for the exporters' tests.
package statstest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/inbound"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/shared"
)

// An Exporter is what all exporters have.
type Exporter interface {
	Limiter(name string, l *reserve.Limiter) error
	Inbound(name string, m *inbound.Middleware) error
	Shared(name string, l *shared.Limiter) error
	Outbound(name string, then outbound.Hooks) (outbound.Hooks, error)
}

// Series is what an exporter shows of what Fill does, as Prometheus names it, but for the
// histogram.
var Series = map[string]float64{
	`pace_limiter_rate_permits_per_second{limiter="billing"}`:  10,
	`pace_limiter_capacity_permits{limiter="billing"}`:         10,
	`pace_limiter_level_permits{limiter="billing"}`:            -4,
	`pace_limiter_debt_permits{limiter="billing"}`:             4,
	`pace_limiter_next_permit_seconds{limiter="billing"}`:      0.4,
	`pace_limiter_pause_seconds{limiter="billing"}`:            0,
	`pace_limiter_waiting_callers{limiter="billing"}`:          0,
	`pace_limiter_granted_permits_total{limiter="billing"}`:    9,
	`pace_limiter_refused_permits_total{limiter="billing"}`:    7,
	`pace_limiter_given_back_permits_total{limiter="billing"}`: 5,
	`pace_limiter_used_permits{limiter="billing"}`:             4,
	`pace_limiter_waited_seconds_total{limiter="billing"}`:     0,

	`pace_outbound_attempts_total{transport="github",result="sent"}`:        2,
	`pace_outbound_attempts_total{transport="github",result="not_sent"}`:    1,
	`pace_outbound_throttled_attempts_total{transport="github"}`:            1,
	`pace_outbound_retry_after_seconds_total{transport="github"}`:           3,
	`pace_outbound_rate_changes_total{transport="github",direction="up"}`:   1,
	`pace_outbound_rate_changes_total{transport="github",direction="down"}`: 2,
	`pace_outbound_estimated_permits_total{transport="github"}`:             100,
	`pace_outbound_used_permits_total{transport="github"}`:                  70,

	`pace_inbound_allowed_requests_total{middleware="api"}`:                                  1,
	`pace_inbound_unauthorized_requests_total{middleware="api"}`:                             0,
	`pace_inbound_waited_seconds_total{middleware="api"}`:                                    0,
	`pace_inbound_queued_requests_total{middleware="api"}`:                                   0,
	`pace_inbound_waiting_requests{middleware="api"}`:                                        0,
	`pace_inbound_gone_requests_total{middleware="api"}`:                                     0,
	`pace_inbound_delayed_refusals_total{middleware="api"}`:                                  0,
	`pace_inbound_tier_requests_total{middleware="api",tier="global",result="refused"}`:      2,
	`pace_inbound_tier_requests_total{middleware="api",tier="global",result="would_refuse"}`: 0,
	`pace_inbound_tier_requests_total{middleware="api",tier="global",result="failed"}`:       0,
	`pace_inbound_tier_crowded_requests_total{middleware="api",tier="global"}`:               0,

	`pace_shared_fallbacks_total{limiter="fleet"}`: 1,
}

// WaitSum is the sum of the histogram's two waits, of 20 ms and 10 s.
const WaitSum = 10.02

// Fill shows one source of each kind.
func Fill(t testing.TB, e Exporter) {
	clock := reserve.WithClock(clockwork.NewFakeClock())
	l := reserve.Must(pace.NewBursty(10, clock))
	require.NoError(t, e.Limiter("billing", l))
	require.True(t, l.TryAcquire(4))
	r, err := l.Reserve(context.Background(), 5)
	require.NoError(t, err)
	r.Cancel()
	require.False(t, l.TryAcquire(3))
	require.False(t, l.TryAcquire(4)) // that is known without the lock, and counted all the same

	policy := reserve.Must(pace.Bursty(1, pace.WithBurst(0), clock))
	m := reserve.Must(inbound.New([]inbound.Tier{inbound.Global("global", policy)}))
	require.NoError(t, e.Inbound("api", m))
	h := m.Handler(http.NotFoundHandler())
	for range 3 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}

	s := reserve.Must(shared.New(down{}, "fleet", reserve.Must(pace.Bursty(1))))
	require.NoError(t, e.Shared("fleet", s))
	require.Error(t, s.Wait(context.Background()))

	told := 0
	hooks, err := e.Outbound("github", outbound.Hooks{
		Waited:      func(*http.Request, time.Duration) { told++ },
		Refused:     func(*http.Request, error) { told++ },
		Throttled:   func(*http.Response, string, time.Duration) { told++ },
		RateChanged: func(*http.Request, string, float64, float64) { told++ },
		Settled:     func(*http.Request, string, int, int) { told++ },
	})
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	hooks.Waited(request, 20*time.Millisecond)
	hooks.Waited(request, 10*time.Second)
	hooks.Refused(request, errDown)
	hooks.Throttled(&http.Response{Request: request}, "", 3*time.Second)
	hooks.RateChanged(request, "", 1, 2)
	hooks.RateChanged(request, "", 2, 1)
	hooks.RateChanged(request, "", 1, 0.5)
	hooks.Settled(request, "", 100, 70)
	require.Equal(t, 8, told, "the program's own hooks are called too")
}

var errDown = errors.New("down")

type down struct{}

func (down) Eval(context.Context, *shared.Script, string, []byte) ([]byte, error) {
	return nil, errDown
}

// Refuses checks that an exporter refuses what makes no sense, with errors that begin with its
// package's name.
func Refuses(t testing.TB, e Exporter, pkg string) {
	l := reserve.Must(pace.NewBursty(1))
	m := reserve.Must(inbound.New([]inbound.Tier{inbound.GlobalBy("global", l)}))
	s := reserve.Must(shared.New(down{}, "fleet", reserve.Must(pace.Bursty(1))))
	require.EqualError(t, e.Limiter("a", nil), pkg+": the limiter a is <nil>; want a limiter")
	require.EqualError(t, e.Inbound("a", nil), pkg+": the middleware a is <nil>; want a middleware")
	require.EqualError(t, e.Shared("a", nil), pkg+": the shared limiter a is <nil>; want a limiter")
	outbounds := func(name string) error {
		_, err := e.Outbound(name, outbound.Hooks{})
		return err
	}
	for name, add := range map[string]func(name string) error{
		"a limiter":        func(name string) error { return e.Limiter(name, l) },
		"a middleware":     func(name string) error { return e.Inbound(name, m) },
		"a shared limiter": func(name string) error { return e.Shared(name, s) },
		"a transport":      outbounds,
	} {
		require.EqualError(t, add(""), pkg+": the name of "+name+` is ""; want one that is not empty`)
		require.EqualError(t, add("\xff"), pkg+": the name of "+name+` is "\xff"; want UTF-8`)
		require.NoError(t, add("a"))
		require.EqualError(t, add("a"), pkg+": the name of "+name+` is "a"; want another for each`)
	}
}
