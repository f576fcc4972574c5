package outbound

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// late is a clock whose timers are late, as on a machine that is busy: by up to so much.
type late struct {
	clockwork.Clock
	by time.Duration
}

func (l late) NewTimer(d time.Duration) clockwork.Timer {
	if d > 0 {
		d += rand.N(l.by)
	}
	return l.Clock.NewTimer(d)
}

// Wake-ups that are late by 10 ms cost no rate, at 500/s and with nothing saved up, where enough
// callers wait: their times were promised before. A single caller asks only after it has woken, so
// it loses what it sleeps too long; so does the line in front of several limits, whose first one
// reserves when it is to go. There 20 ms saved up make up for it.
func TestLateWakeUps(t *testing.T) {
	for _, c := range []struct {
		name       string
		goroutines int
		burst      time.Duration
		limits     int // 0: Acquire, without a transport
		least      float64
		most       float64 // of 500/s
	}{
		{"a limiter, 64 callers", 64, 0, 0, 0.99, 1.01},
		{"a limiter, one caller", 1, 0, 0, 0.1, 0.9},
		{"a limiter, one caller, 20 ms saved up", 1, 20 * time.Millisecond, 0, 0.97, 1.03},
		{"a transport, 64 callers", 64, 0, 1, 0.99, 1.01},
		{"a transport with two limits, 64 callers", 64, 0, 2, 0.97, 1.03},
		{"a transport with two limits, 64 callers, 20 ms saved up", 64, 20 * time.Millisecond, 2, 0.97, 1.03},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := late{clockwork.NewRealClock(), 10 * time.Millisecond}
				limiter := func() *reserve.Limiter {
					return reserve.Must(pace.NewBursty(500, pace.WithBurst(c.burst), reserve.WithClock(clock)))
				}
				first, opts := limiter(), []Option{WithClock(clock)}
				for i := range c.limits - 1 {
					opts = append(opts, WithLimit(Limit{Name: fmt.Sprint(i), Limiter: limiter()}))
				}
				transport := reserve.Must(New(tripper(func(*http.Request) (*http.Response, error) { return ok(""), nil }), first, opts...))
				end := time.Now().Add(10 * time.Second)
				var mu sync.Mutex
				var all sync.WaitGroup
				went := 0.
				for range c.goroutines {
					all.Go(func() {
						for time.Now().Before(end) {
							if c.limits == 0 {
								first.Acquire(t.Context(), 1)
							} else if _, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/", nil)); err != nil {
								t.Error(err)
							}
							mu.Lock()
							went++
							mu.Unlock()
						}
					})
				}
				all.Wait()
				t.Logf("%.3f of the rate", went/5000)
				require.GreaterOrEqual(t, went/5000, c.least)
				require.LessOrEqual(t, went/5000, c.most+0.02)
			})
		})
	}
}
