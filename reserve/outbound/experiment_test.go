package outbound

import (
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// The experiment of bench/sdk/outbound, in fake time: 64 goroutines make 500 calls to a
// server that allows 50/s with a burst of 10, which takes 9.8 s at best.
func TestExperiment(t *testing.T) {
	for _, c := range []struct {
		name    string
		rate    float64
		headers bool
		opts    []Option
		over    float64 // of the best time, at most
		refused int     // at most
	}{
		{"the right rate", 50, false, nil, 1.03, 0},
		{"60 % too high", 80, false, []Option{Adaptive()}, 1.25, 5},
		{"60 % too high, PauseRefused", 80, false, []Option{Adaptive(), PauseRefused()}, 1.05, 9},
		{"none, with headers", math.Inf(1), true, []Option{Adaptive()}, 1.07, 0},
		{"none, without", math.Inf(1), false, []Option{Adaptive(), PauseRefused()}, 1.10, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			tokens, last, refused := 10., time.Time{}, 0
			var begin time.Time
			bubble(t, func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				now := time.Now()
				if !last.IsZero() {
					tokens = min(10, tokens+50*now.Sub(last).Seconds())
				}
				last = now
				if c.headers {
					w.Header().Set("RateLimit-Policy", `"default";q=50;w=1`)
				}
				if tokens < 1 {
					refused++
					t.Logf("%v: refused", now.Sub(begin))
					refuse(w, "Retry-After: 1")
					return
				}
				tokens--
			}, func(t *testing.T, base *http.Transport) {
				limiter := reserve.Must(pace.NewBursty(c.rate, pace.WithBurst(0)))
				client := &http.Client{Transport: reserve.Must(New(base, limiter, append(c.opts, WithRetries(100), WithHooks(Hooks{RateChanged: func(_ *http.Request, _ string, from, to float64) {
					t.Logf("%v: %.1f -> %.1f", time.Since(begin), from, to)
				}}))...))}
				begin = time.Now()
				calls := make(chan int, 500)
				for i := range cap(calls) {
					calls <- i
				}
				close(calls)
				var all sync.WaitGroup
				for range 64 {
					all.Go(func() {
						for range calls {
							if status, err := get(client, "http://a"); err != nil || status != 200 {
								t.Error(status, err)
							}
						}
					})
				}
				all.Wait()
				took := time.Since(begin)
				t.Logf("%.2f times the best, %d refused", took.Seconds()/9.8, refused)
				require.LessOrEqual(t, took.Seconds(), c.over*9.8)
				require.LessOrEqual(t, refused, c.refused)
			})
		})
	}
}
