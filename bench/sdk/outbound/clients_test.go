package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-github/v75/github"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/pacetest"
)

// A refusing server refuses all calls that come before a time, and answers others. It is real HTTP over pipes,
// in simulated time.
type refusing struct {
	wait            time.Duration // from its first call
	say             func(h http.Header, until time.Time) (status int, body string)
	answer          string
	until           time.Time
	seen            []time.Duration // since until
	refused, served int
}

func (s *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	now := time.Now()
	if s.until.IsZero() {
		s.until = now.Add(s.wait)
	}
	s.seen = append(s.seen, now.Sub(s.until))
	if now.Before(s.until) {
		s.refused++
		status, body := s.say(w.Header(), s.until)
		w.WriteHeader(status)
		io.WriteString(w, body)
		return
	}
	s.served++
	io.WriteString(w, s.answer)
}

// simulated runs f in a bubble, with a transport whose connections all lead to the server. It is noon in 2026 there.
func simulated(t *testing.T, server http.Handler, f func(t *testing.T, base http.RoundTripper)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)))
		f(t, pacetest.Client(t, server).Transport)
	})
}

func tenPerSecond() *reserve.Limiter { return reserve.Must(pace.NewBursty(10, pace.WithBurst(0))) }

// The ways in which GitHub refuses, as its documentation describes them.
var githubRefusals = []struct {
	name  string
	say   func(h http.Header, until time.Time) (int, string)
	error any // what go-github makes of it
}{
	{"primary limit, 403 with nothing left", func(h http.Header, until time.Time) (int, string) {
		nothingLeft(h, until)
		return 403, `{"message": "API rate limit exceeded for user ID 1.", "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`
	}, new(*github.RateLimitError)},
	{"primary limit, 429 with nothing left", func(h http.Header, until time.Time) (int, string) {
		nothingLeft(h, until)
		return 429, `{"message": "API rate limit exceeded for user ID 1."}`
	}, new(*github.ErrorResponse)}, // of this version
	{"secondary limit, 403 with Retry-After", func(h http.Header, until time.Time) (int, string) {
		h.Set("Retry-After", fmt.Sprint(int(time.Until(until).Seconds())))
		return 403, secondary
	}, new(*github.AbuseRateLimitError)},
	{"secondary limit, 403 with nothing left", func(h http.Header, until time.Time) (int, string) {
		nothingLeft(h, until)
		return 403, secondary
	}, new(*github.RateLimitError)},
	{"secondary limit, 403 with a body only", func(http.Header, time.Time) (int, string) {
		return 403, secondary // "wait for at least one minute"
	}, new(*github.AbuseRateLimitError)},
}

const secondary = `{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
	"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`

func nothingLeft(h http.Header, until time.Time) {
	h.Set("X-RateLimit-Limit", "5000")
	h.Set("X-RateLimit-Remaining", "0")
	h.Set("X-RateLimit-Reset", fmt.Sprint(until.Unix()))
}

func githubOn(base http.RoundTripper, opts ...outbound.Option) *github.Client {
	client := github.NewClient(&http.Client{Transport: reserve.Must(outbound.New(base, tenPerSecond(), opts...))})
	client.BaseURL = &url.URL{Scheme: "http", Host: "api.github.com", Path: "/"}
	return client
}

// go-github's typed errors come through, and nothing more is sent to the server before it wants it, though each client here is
// another one, which does not know of the others' refusals.
func TestGoGitHubErrors(t *testing.T) {
	for _, c := range githubRefusals {
		t.Run(c.name, func(t *testing.T) {
			s := &refusing{wait: time.Minute, say: c.say, answer: `{"full_name": "nextfree/pace"}`}
			simulated(t, s, func(t *testing.T, base http.RoundTripper) {
				transport := reserve.Must(outbound.New(base, tenPerSecond()))
				get := func() error {
					client := github.NewClient(&http.Client{Transport: transport})
					client.BaseURL = &url.URL{Scheme: "http", Host: "api.github.com", Path: "/"}
					_, _, err := client.Repositories.Get(t.Context(), "nextfree", "pace")
					return err
				}
				require.ErrorAs(t, get(), c.error)
				require.NoError(t, get(), "it waits until the server wants it")
				require.Equal(t, 1, s.refused)
				require.InDelta(t, 0, s.seen[1], float64(time.Second))
			})
		})
	}
}

// With retries, a caller of go-github sees no refusal at all.
func TestGoGitHubRetries(t *testing.T) {
	for _, c := range githubRefusals {
		t.Run(c.name, func(t *testing.T) {
			s := &refusing{wait: time.Minute, say: c.say, answer: `{"full_name": "nextfree/pace"}`}
			simulated(t, s, func(t *testing.T, base http.RoundTripper) {
				client := githubOn(base, outbound.WithRetries(3))
				for range 20 {
					repo, _, err := client.Repositories.Get(t.Context(), "nextfree", "pace")
					require.NoError(t, err)
					require.Equal(t, "nextfree/pace", repo.GetFullName())
				}
				require.Equal(t, 1, s.refused)
				require.Equal(t, 20, s.served)
				for i, at := range s.seen[2:] {
					require.GreaterOrEqual(t, at-s.seen[i+1], 99*time.Millisecond, "no herd afterwards")
				}
			})
		})
	}
}

func slackRefusal(h http.Header, until time.Time) (int, string) {
	h.Set("Retry-After", fmt.Sprint(int(time.Until(until).Seconds())))
	return 429, `{"ok": false, "error": "ratelimited"}`
}

// slack-go's typed error comes through with its time, and the next call waits for that.
func TestSlackGoError(t *testing.T) {
	s := &refusing{wait: 30 * time.Second, say: slackRefusal, answer: `{"ok": true, "user": "pace"}`}
	simulated(t, s, func(t *testing.T, base http.RoundTripper) {
		client := slack.New("xoxb-1", slack.OptionAPIURL("http://slack.com/api/"),
			slack.OptionHTTPClient(&http.Client{Transport: reserve.Must(outbound.New(base, tenPerSecond()))}))
		_, err := client.AuthTestContext(t.Context())
		var limited *slack.RateLimitedError
		require.ErrorAs(t, err, &limited)
		require.Equal(t, 30*time.Second, limited.RetryAfter)
		answer, err := client.AuthTestContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, "pace", answer.User)
		require.Equal(t, 1, s.refused)
		require.InDelta(t, 0, s.seen[1], float64(time.Second))
	})
}

// With retries, callers of slack-go see no refusal: their bodies, of forms, are sent again.
func TestSlackGoRetries(t *testing.T) {
	s := &refusing{wait: 30 * time.Second, say: slackRefusal, answer: `{"ok": true, "channel": "C1", "ts": "1.2"}`}
	simulated(t, s, func(t *testing.T, base http.RoundTripper) {
		client := slack.New("xoxb-1", slack.OptionAPIURL("http://slack.com/api/"),
			slack.OptionHTTPClient(&http.Client{Transport: reserve.Must(outbound.New(base, tenPerSecond(), outbound.WithRetries(3)))}))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, _, err := client.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("hello", false))
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Equal(t, 1, s.refused)
		require.Equal(t, 20, s.served)
	})
}
