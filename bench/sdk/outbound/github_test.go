package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v75/github"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// A hub answers one call as GitHub does, with its limit: so many calls in a window, which
// begins with a call, and 403 for all beyond.
type hub struct {
	limit  int
	window time.Duration

	mu                      sync.Mutex
	reset                   time.Time
	used                    int
	answered, refused, full int // full: answers that left nothing
}

func (h *hub) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.After(h.reset) {
		h.reset = now.Add(h.window + time.Second).Truncate(time.Second)
		h.used = 0
	}
	h.used++
	header := w.Header()
	header.Set("X-RateLimit-Limit", fmt.Sprint(h.limit))
	header.Set("X-RateLimit-Remaining", fmt.Sprint(max(0, h.limit-h.used)))
	header.Set("X-RateLimit-Used", fmt.Sprint(min(h.used, h.limit)))
	header.Set("X-RateLimit-Reset", fmt.Sprint(h.reset.Unix()))
	header.Set("X-RateLimit-Resource", "core")
	header.Set("Content-Type", "application/json")
	if h.used >= h.limit {
		h.full++
	}
	if h.used > h.limit {
		h.refused++
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"message": "API rate limit exceeded", "documentation_url": "https://docs.github.com/rest/rate-limit"}`)
		return
	}
	h.answered++
	fmt.Fprint(w, `{"id": 1, "full_name": "nextfree/pace"}`)
}

// go-github, as it is, makes 200 calls to a server that allows 100 in 4 s. It refuses
// by itself to make a call while it knows that none is left, so that must not happen either.
func TestGoGitHub(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	h := &hub{limit: 100, window: 4 * time.Second}
	server := httptest.NewServer(h)
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()

	begin := time.Now()
	limiter := reserve.Must(pace.NewBursty(math.Inf(1), pace.WithBurst(0))) // nothing is known of the limit
	transport := reserve.Must(outbound.New(base, limiter, outbound.Adaptive(), outbound.WithHooks(outbound.Hooks{
		RateChanged: func(_ *http.Request, _ string, from, to float64) {
			if math.Abs(to-from) > 0.2*to {
				t.Logf("%5.2f s: rate %.1f/s", time.Since(begin).Seconds(), to)
			}
		},
		Throttled: func(r *http.Response, _ string, d time.Duration) { t.Logf("refused: %s, %v", r.Status, d) },
	})))
	client := github.NewClient(&http.Client{Transport: transport})
	client.BaseURL, _ = url.Parse(server.URL + "/")

	calls := make(chan int, 200)
	for i := range cap(calls) {
		calls <- i
	}
	close(calls)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range calls {
				repo, response, err := client.Repositories.Get(context.Background(), "nextfree", "pace")
				if err != nil {
					t.Errorf("call %d: %v", i, err)
					continue
				}
				if repo.GetFullName() != "nextfree/pace" {
					t.Errorf("call %d: %v", i, repo)
				}
				if i%40 == 0 {
					t.Logf("%5.2f s: call %3d: %s, %d of %d left", time.Since(begin).Seconds(), i, response.Status, response.Rate.Remaining, response.Rate.Limit)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%5.2f s: %d calls answered, %d refused, %d answers left nothing", time.Since(begin).Seconds(), h.answered, h.refused, h.full)
	require.Equal(t, 200, h.answered)
	require.Zero(t, h.refused)
	require.Zero(t, h.full)
}
