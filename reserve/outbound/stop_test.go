package outbound

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
)

// script answers calls in their order, after a delay each, and notes when they came.
type script struct {
	begin time.Time
	steps []step
	mu    sync.Mutex
	came  []time.Duration
}

type step struct {
	after  time.Duration
	answer func() *http.Response
}

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := len(s.came)
	s.came = append(s.came, time.Since(s.begin))
	s.mu.Unlock()
	if n >= len(s.steps) {
		return says(200, ""), nil
	}
	pass(s.steps[n].after)
	return s.steps[n].answer(), nil
}

// before counts the calls that came before a time.
func (s *script) before(d time.Duration) (n int) {
	for _, at := range s.came {
		if at < d {
			n++
		}
	}
	return n
}

// A refusal that names no limit stops the account. No later answer lifts that: it may name limits, or accept.
func TestNoAnswerLiftsAStop(t *testing.T) {
	const ms = time.Millisecond
	say := func(status int, header ...string) func() *http.Response {
		return func() *http.Response { return says(status, "", header...) }
	}
	core := func(status int, more ...string) func() *http.Response {
		return say(status, append(more, "X-Ratelimit-Limit", "5000", "X-Ratelimit-Remaining", "4000", "X-Ratelimit-Reset", "3600", "X-Ratelimit-Resource", "core")...)
	}
	ok, stop := say(200), say(429, "Retry-After", "30")
	for name, steps := range map[string][]step{
		"late, and accepted":                   {{50 * ms, ok}, {50 * ms, stop}, {150 * ms, ok}},
		"late, and names the limit":            {{50 * ms, ok}, {50 * ms, stop}, {150 * ms, core(200)}},
		"late, and names the limit in a 404":   {{50 * ms, ok}, {50 * ms, stop}, {150 * ms, core(404)}},
		"the limit was known":                  {{50 * ms, core(200)}, {50 * ms, stop}, {150 * ms, core(200)}},
		"late, and a shorter stop":             {{50 * ms, ok}, {50 * ms, stop}, {150 * ms, say(429, "Retry-After", "1")}},
		"late, and nothing left for 2 s":       {{50 * ms, ok}, {50 * ms, stop}, {150 * ms, say(200, "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "2")}},
		"for all, by its words":                {{50 * ms, core(200)}, {50 * ms, say(429, "Retry-After", "30", "X-Ratelimit-Global", "true")}, {150 * ms, core(200)}},
		"for all, as the named limit has room": {{50 * ms, core(200)}, {50 * ms, core(403, "Retry-After", "30")}, {150 * ms, core(200)}},
	} {
		for _, opts := range [][]Option{nil, {Adaptive()}} {
			t.Run(fmt.Sprint(name, len(opts)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &script{begin: time.Now(), steps: steps}
					transport := reserve.Must(New(server, nil, opts...))
					client := &http.Client{Transport: transport}
					get(client, "http://a/x")
					getAll(client, "http://a/x", 2)
					before := server.before(29 * time.Second)
					getAll(client, "http://a/x", 20)
					require.Equal(t, before, server.before(30*time.Second), "%v", server.came)
					require.NotEmpty(t, transport.Snapshot().Limits)
				})
			})
		}
	}
}

// A key whose limiter is another one meanwhile is stopped all the same.
func TestStopOutlivesALimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &script{begin: time.Now(), steps: []step{{0, func() *http.Response { return says(429, "", "Retry-After", "30") }}}}
		limiterOf := func(string) reserve.Reserver { return reserve.Must(pace.NewBursty(100)) }
		client := &http.Client{Transport: reserve.Must(New(server, nil, PerKey(Host, limiterOf)))}
		for range 3 {
			get(client, "http://a/")
		}
		get(client, "http://b/")
		require.Equal(t, 1, server.before(29*time.Second), "%v", server.came)
	})
}

// A late acceptance ends an upstream's rest, and not the server's stop.
func TestStopOutlivesARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var mu sync.Mutex
		var came []time.Duration
		base := tripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "b" {
				return says(200, ""), nil
			}
			mu.Lock()
			came = append(came, time.Since(begin))
			n := len(came)
			mu.Unlock()
			switch n {
			case 1:
				return says(500, ""), nil
			case 2: // the probe
				pass(5 * time.Second)
				return says(200, ""), nil
			case 3:
				return says(429, "", "Retry-After", "30"), nil
			}
			return says(200, ""), nil
		})
		by := func() reserve.Reserver { return notPausable{reserve.Must(pace.NewBursty(100))} }
		client := &http.Client{Transport: reserve.Must(NewUpstreams(base, []Upstream{
			{Base: &url.URL{Scheme: "http", Host: "a"}, By: by()}, {Base: &url.URL{Scheme: "http", Host: "b"}, By: by(), Tier: 1},
		}))}
		get(client, "http://x/")
		pass(2 * time.Second)
		done := make(chan int)
		go func() { status, _ := get(client, "http://x/"); done <- status }()
		pass(2 * time.Second)
		get(client, "http://x/")
		require.Len(t, came, 3)
		require.Equal(t, 200, <-done)
		get(client, "http://x/")
		require.Len(t, came, 3)
		pass(30 * time.Second)
		get(client, "http://x/")
		require.Len(t, came, 4)
	})
}

type notPausable struct{ reserve.Reserver }
