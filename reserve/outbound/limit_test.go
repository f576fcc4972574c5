package outbound

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/keyed"
	"github.com/nextfree/pace/reserve/window"
)

// costOf is what a request's URL says that it costs.
func costOf(r *http.Request) int {
	n, _ := strconv.Atoi(r.URL.Query().Get("tokens"))
	return n
}

// lastNumber finds usage: it is the last number in the body.
type lastNumber struct{ seen bytes.Buffer }

func (l *lastNumber) Write(b []byte) (int, error) { return l.seen.Write(b) }

func (l *lastNumber) Used() (int, bool) {
	all := regexp.MustCompile(`\d+`).FindAllString(l.seen.String(), -1)
	if len(all) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(all[len(all)-1])
	return n, err == nil
}

func usage(*http.Response) Usage { return new(lastNumber) }

// Requests and tokens in one transport: each has its own cost, and whichever is short spaces the
// calls.
func TestRequestsAndTokens(t *testing.T) {
	var j *journal
	bubble(t, func(_ http.ResponseWriter, r *http.Request) { j.note(r) }, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		tokens := reserve.Must(pace.NewBursty(800, pace.WithBurst(0)))
		client := &http.Client{Transport: reserve.Must(New(base, evenly10(), WithLimit(Limit{Name: "tokens", Limiter: tokens, Cost: costOf})))}
		for i, n := range []int{800, 8, 8, 160, 160, 0, 0} {
			go get(client, fmt.Sprintf("http://a/%d?tokens=%d", i, n))
			synctest.Wait()
		}
		pass(3 * time.Second)
		// The last two ask nothing of the tokens, and so are not in line behind those that wait for
		// them.
		require.Equal(t, []string{"/0", "/5", "/6", "/1", "/2", "/3", "/4"}, j.order())
		require.Equal(t, ms(0, 100, 200, 1000, 1100, 1200, 1400), j.times())
	})
}

// What a call used is known at the end of its body: the body comes unchanged, and the limit is
// settled once, however it ends.
func TestUsed(t *testing.T) {
	for name, c := range map[string]struct {
		body io.Reader
		read func(t *testing.T, body io.ReadCloser)
		used int
	}{
		"read to its end": {strings.NewReader("used 10, no 25"), func(t *testing.T, b io.ReadCloser) {
			got, err := io.ReadAll(b)
			require.NoError(t, err)
			require.Equal(t, "used 10, no 25", string(got))
		}, 25},
		"closed halfway":    {strings.NewReader("used 10, no 25"), func(t *testing.T, b io.ReadCloser) { io.ReadFull(b, make([]byte, 8)); b.Close() }, 10},
		"closed unread":     {strings.NewReader("used 10, no 25"), func(t *testing.T, b io.ReadCloser) { b.Close(); b.Close() }, 100},
		"no number":         {strings.NewReader("nothing"), func(t *testing.T, b io.ReadCloser) { io.ReadAll(b) }, 100},
		"more than thought": {strings.NewReader("used 250"), func(t *testing.T, b io.ReadCloser) { io.ReadAll(b); b.Close() }, 250},
		"broken": {io.MultiReader(strings.NewReader("used 40"), failing{}), func(t *testing.T, b io.ReadCloser) {
			_, err := io.ReadAll(b)
			require.ErrorIs(t, err, errGone)
		}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := tripper(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(c.body)}, nil
				})
				var settled []int
				tokens := reserve.Must(pace.NewBursty(100, pace.WithBurst(0)))
				transport := reserve.Must(New(base, nil, WithLimit(Limit{Name: "tokens", Limiter: tokens, Cost: func(*http.Request) int { return 100 }, Used: usage}),
					WithHooks(Hooks{Settled: func(_ *http.Request, limit string, estimated, used int) {
						require.Equal(t, "tokens", limit)
						require.Equal(t, 100, estimated)
						settled = append(settled, used)
					}})))
				begin := time.Now()
				response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://a/", nil))
				require.NoError(t, err)
				require.Equal(t, begin.Add(time.Second), tokens.NextFree(), "the estimate, until it is known")
				c.read(t, response.Body)
				require.Equal(t, begin.Add(time.Duration(c.used)*10*time.Millisecond), tokens.NextFree())
				require.LessOrEqual(t, len(settled), 1)
			})
		})
	}
}

// failing is a body that breaks.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errGone }

// A body that nobody reads is settled when its request's context ends.
func TestUsedWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := tripper(func(*http.Request) (*http.Response, error) { return ok("used 7"), nil })
		tokens := reserve.Must(pace.NewBursty(100, pace.WithBurst(0)))
		transport := reserve.Must(New(base, nil, WithLimit(Limit{Limiter: tokens, Cost: func(*http.Request) int { return 100 }, Used: usage})))
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		response, err := transport.RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "http://a/", nil))
		require.NoError(t, err)
		response.Body.Read(make([]byte, 100))
		cancel()
		synctest.Wait()
		require.Equal(t, begin.Add(70*time.Millisecond), tokens.NextFree())
		response.Body.Close()
	})
}

// A refusal has used nothing.
func TestRefusedUsesNothing(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w) }, func(t *testing.T, base *http.Transport) {
		tokens := reserve.Must(pace.NewBursty(100, pace.WithBurst(0)))
		begin := time.Now()
		get(&http.Client{Transport: reserve.Must(New(base, nil, WithLimit(Limit{Limiter: tokens, Cost: func(*http.Request) int { return 100 }, Used: usage})))}, "http://a")
		require.Equal(t, begin, tokens.NextFree())
	})
}

// Each limit is stopped and adapted by itself: what a server says of tokens is for the limit called
// so.
func TestEachByItself(t *testing.T) {
	for _, c := range []struct {
		name             string
		status           int
		lines            string
		requests, tokens time.Duration // until they go on
		rates            [2]float64
		throttled        []string
	}{
		{"no tokens left", 200, "x-ratelimit-limit-tokens: 600\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 60s",
			0, 10 * time.Second, [2]float64{1000, 9.8}, nil},
		{"no requests left", 200, "x-ratelimit-limit-requests: 600\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 60s",
			100 * time.Millisecond, 0, [2]float64{9.8, 1e5}, nil},
		{"refused for tokens", 429, "retry-after: 3\nx-ratelimit-limit-tokens: 6000\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 60s",
			0, 3 * time.Second, [2]float64{1000, 88.67}, []string{"tokens 3s"}},
		{"refused for requests", 429, "retry-after: 3\nx-ratelimit-limit-requests: 600\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 60s",
			3 * time.Second, 0, [2]float64{8.867, 1e5}, []string{" 3s"}},
		{"refused, of what it does not say", 429, "retry-after: 3", 3 * time.Second, 0, [2]float64{600, 1e5}, []string{" 3s"}},
		{"of what nobody counts", 200, "anthropic-ratelimit-output-tokens-limit: 600\nanthropic-ratelimit-output-tokens-remaining: 0\n" +
			"anthropic-ratelimit-output-tokens-reset: 2026-11-21T12:01:00Z", 0, 0, [2]float64{1000, 1e5}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(w http.ResponseWriter, _ *http.Request) { refuseWith(w, c.status, strings.Split(c.lines, "\n")...) },
				func(t *testing.T, base *http.Transport) {
					pass(time.Until(received))
					requests, tokens := reserve.Must(pace.NewBursty(1000, pace.WithBurst(0))), reserve.Must(pace.NewBursty(1e5, pace.WithBurst(0)))
					limit := Limit{Name: "tokens", Limiter: tokens, Cost: func(*http.Request) int { return 100 }}
					var throttled []string
					hooks := Hooks{Throttled: func(_ *http.Response, limit string, d time.Duration) {
						throttled = append(throttled, fmt.Sprint(limit, " ", d))
					}}
					get(&http.Client{Transport: reserve.Must(New(base, requests, WithLimit(limit), Adaptive(), WithHooks(hooks)))}, "http://a")
					require.Equal(t, c.throttled, throttled)
					slack := float64(20 * time.Millisecond) // of what they owe
					if c.status == 429 {
						slack = float64(300 * time.Millisecond)
					}
					require.InDelta(t, c.requests, time.Until(requests.NextFree()), slack, "requests")
					if c.tokens < time.Second {
						require.Less(t, time.Until(tokens.NextFree()), time.Second)
					} else {
						require.InDelta(t, c.tokens, time.Until(tokens.NextFree()), 12*slack, "tokens")
					}
					require.InDelta(t, c.rates[0], requests.Rate(), 0.02*c.rates[0])
					require.InDelta(t, c.rates[1], tokens.Rate(), 0.02*c.rates[1])
				})
		})
	}
}

// A key of one limit never slows another, though they share a limit.
func TestKeysOfOneLimit(t *testing.T) {
	var j *journal
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		if j.note(r); r.Header.Get("Authorization") == "slow" {
			refuse(w, "Retry-After: 60")
		}
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		policy := reserve.Must(pace.Bursty(100, pace.WithBurst(0)))
		users := keyed.New(func(string) (*reserve.Policy, error) { return policy, nil })
		transport := reserve.Must(New(base, evenly10(), WithLimit(Limit{Keyed: Keyed(Credential, users.For)})))
		do := func(user string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://a/"+user, nil)
			r.Header.Set("Authorization", user)
			response, err := transport.RoundTrip(r)
			if err == nil {
				response.Body.Close()
			}
		}
		do("slow")
		for range 30 {
			go do("slow")
		}
		synctest.Wait()
		for range 5 {
			do("fast")
		}
		require.Equal(t, ms(0, 100, 200, 300, 400, 500), j.times())
		pass(2 * time.Hour)
	})
}

// A dialect of one's own goes before those that are known.
func TestWithDialect(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		refuseWith(w, 200, "X-Acme-Left: 0", "X-Acme-Until: 7", "X-RateLimit-Remaining: 100", "X-RateLimit-Reset: 60")
	}, func(t *testing.T, base *http.Transport) {
		limiter := evenly10()
		acme := Dialect{Name: "Acme", Remaining: "X-Acme-Left", Reset: "X-Acme-Until"}
		get(&http.Client{Transport: reserve.Must(New(base, limiter, WithDialect(acme)))}, "http://a")
		require.InDelta(t, 7*time.Second, time.Until(limiter.NextFree()), float64(200*time.Millisecond))
	})
}

// A request that waits costs what is known when its turn comes.
func TestRecost(t *testing.T) {
	var j *journal
	bubble(t, func(_ http.ResponseWriter, r *http.Request) { j.note(r) }, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		tokens := reserve.Must(pace.NewBursty(10, pace.WithBurst(0)))
		var cost atomic.Int64
		cost.Store(10)
		of := func(*http.Request) int { return int(cost.Load()) }
		client := &http.Client{Transport: reserve.Must(New(base, nil, WithLimit(Limit{Limiter: tokens, Cost: of, Recost: of})))}
		for i := range 4 {
			go get(client, fmt.Sprintf("http://a/%d", i))
			synctest.Wait()
		}
		pass(500 * time.Millisecond)
		cost.Store(2)
		pass(5 * time.Second)
		// The second had its turn while a request cost 10, so the third goes 1 s after it, and the
		// fourth 0.2 s after that.
		require.Equal(t, ms(0, 1000, 2000, 2200), j.times())
	})
}

// What a server says is left of a limit that is exact stops nobody; a refusal does, if it says for
// how long.
func TestExact(t *testing.T) {
	var j *journal
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		status := 200
		switch j.note(r) {
		case 2: // this one is too large
			status = 429
		case 3:
			status = 429
			w.Header().Set("Retry-After", "4")
		}
		refuseWith(w, status, "x-ratelimit-limit-tokens: 600", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 60s")
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		tokens := reserve.Must(window.New(600, time.Minute))
		client := &http.Client{Transport: reserve.Must(New(base, nil, WithLimit(Limit{Name: "tokens", Limiter: tokens, Cost: func(*http.Request) int { return 100 }, Exact: true})))}
		for range 4 {
			get(client, "http://a/")
		}
		require.Equal(t, ms(0, 0, 0, 4000), j.times())
	})
}

// A server with three limits at once names the one that has refused: only that one is stopped and
// adapted. A name that nobody has is of the limit that has none.
func TestReason(t *testing.T) {
	for _, c := range []struct {
		line string
		want [3]time.Duration // of all, of the tenant's quota, of the burst
	}{
		{"RateLimit-Reason: jira-quota-tenant-based", [3]time.Duration{0, time.Minute, 0}},
		{"RateLimit-Reason: jira-burst-based", [3]time.Duration{0, 0, time.Minute}},
		{"RateLimit-Reason: jira-per-issue-on-write", [3]time.Duration{time.Minute, 0, 0}},
		{"Stripe-Rate-Limited-Reason: jira-burst-based", [3]time.Duration{0, 0, time.Minute}},
		{"X-Other: jira-burst-based", [3]time.Duration{time.Minute, 0, 0}},
	} {
		t.Run(c.line, func(t *testing.T) {
			bubble(t, func(w http.ResponseWriter, _ *http.Request) { refuseWith(w, 429, "Retry-After: 60", c.line) }, func(t *testing.T, base *http.Transport) {
				fast := func() *reserve.Limiter { return reserve.Must(pace.NewBursty(1e6, pace.WithBurst(0))) }
				limiters := [3]*reserve.Limiter{fast(), fast(), fast()}
				get(&http.Client{Transport: reserve.Must(New(base, limiters[0], Adaptive(),
					WithLimit(Limit{Name: "jira-quota-tenant-based", Limiter: limiters[1]}),
					WithLimit(Limit{Name: "jira-burst-based", Limiter: limiters[2]})))}, "http://a")
				for i, l := range limiters {
					require.InDelta(t, c.want[i], max(0, time.Until(l.NextFree())), float64(time.Millisecond), "%d", i)
					require.Equal(t, c.want[i] > 0, l.Rate() < 1e6, "%d", i)
				}
			})
		})
	}
}

// While a server refuses for a time, what went before leaves its window, and ours.
func TestAWindowGoesOnWhileItIsStopped(t *testing.T) {
	var j *journal
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		if j.note(r) == 2 {
			refuseWith(w, 429, "Retry-After: 40")
		}
	}, func(t *testing.T, base *http.Transport) {
		j = newJournal()
		client := &http.Client{Transport: reserve.Must(New(base, reserve.Must(window.New(2, time.Minute))))}
		for range 3 {
			get(client, "http://a/")
		}
		require.Equal(t, ms(0, 0, 60_000), j.times())
	})
}
