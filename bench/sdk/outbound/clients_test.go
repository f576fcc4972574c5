package main

import (
	"fmt"
	"io"
	"math"
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

// simulated runs f in a bubble, at noon in 2026, with a server that has a rule, and a client of it that is paced.
func simulated(t *testing.T, rule pacetest.Rule, answer string, permitsPerSecond float64, opts []outbound.Option,
	f func(t *testing.T, server *pacetest.Server, client *http.Client)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)))
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, answer)
		})
		server := reserve.Must(pacetest.New(rule, pacetest.WithDialect(pacetest.GitHub), pacetest.WithHandler(handler)))
		client := pacetest.Client(t, server)
		limiter := reserve.Must(pace.NewBursty(permitsPerSecond, pace.WithBurst(0)))
		client.Transport = reserve.Must(outbound.New(client.Transport, limiter, opts...))
		f(t, server, client)
	})
}

const repository = `{"id": 1, "full_name": "nextfree/pace"}`

// get asks for a repository with a new client, which does not know of other clients' refusals.
func get(t *testing.T, c *http.Client) error {
	client := github.NewClient(c)
	client.BaseURL = &url.URL{Scheme: "http", Host: "api.github.com", Path: "/"}
	repo, _, err := client.Repositories.Get(t.Context(), "nextfree", "pace")
	if err == nil && repo.GetFullName() != "nextfree/pace" {
		err = fmt.Errorf("another repository: %v", repo)
	}
	return err
}

// The ways in which GitHub refuses, as its documentation describes them, for a minute.
var githubRefusals = []struct {
	name   string
	answer func() pacetest.Answer
	error  any // what go-github makes of it
}{
	{"primary limit, 403 with nothing left", func() pacetest.Answer {
		return pacetest.Answer{Status: 403, Header: nothingLeft(), Body: primary}
	}, new(*github.RateLimitError)},
	{"primary limit, 429 with nothing left", func() pacetest.Answer {
		return pacetest.Answer{Status: 429, Header: nothingLeft(), Body: primary}
	}, new(*github.ErrorResponse)}, // of this version
	{"secondary limit, 403 with Retry-After", func() pacetest.Answer {
		return pacetest.Answer{Status: 403, Header: http.Header{"Retry-After": {"60"}}, Body: secondary}
	}, new(*github.AbuseRateLimitError)},
	{"secondary limit, 403 with nothing left", func() pacetest.Answer {
		return pacetest.Answer{Status: 403, Header: nothingLeft(), Body: secondary}
	}, new(*github.RateLimitError)},
	{"secondary limit, 403 with a body only", func() pacetest.Answer { // "wait for at least one minute"
		return pacetest.Answer{Status: 403, Body: secondary}
	}, new(*github.AbuseRateLimitError)},
}

const primary = `{"message": "API rate limit exceeded for user ID 1."}`

const secondary = `{
	"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
	"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`

func nothingLeft() http.Header {
	return http.Header{"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"0"},
		"X-Ratelimit-Reset": {fmt.Sprint(time.Now().Add(time.Minute).Unix())}}
}

// go-github's typed errors come through, and nothing is sent before the server wants it. With retries, a caller of
// go-github sees no refusal at all.
func TestGoGitHubRefused(t *testing.T) {
	for _, c := range githubRefusals {
		for _, retries := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s, %d retries", c.name, retries), func(t *testing.T) {
				simulated(t, pacetest.Unlimited(), repository, 10, []outbound.Option{outbound.WithRetries(retries)},
					func(t *testing.T, server *pacetest.Server, client *http.Client) {
						begin := time.Now()
						server.Script(c.answer())
						if retries == 0 {
							require.ErrorAs(t, get(t, client), c.error)
						}
						for range 20 {
							require.NoError(t, get(t, client))
						}
						require.Len(t, server.Refused(), 1)
						came := server.Accepted()
						require.Len(t, came, 20)
						require.InDelta(t, time.Minute, came[0].Sub(begin), float64(time.Second))
						pacetest.NeverMoreThan(t, 1, 99*time.Millisecond, came)
					})
			})
		}
	}
}

// go-github makes 200 calls to a server that allows 100 in 4 s, and nothing is known of the limit. A window is spent at
// once, so go-github must not refuse calls by itself while none is left: the guide has that line.
func TestGoGitHub(t *testing.T) {
	simulated(t, pacetest.FixedWindow(100, 4*time.Second), repository, math.Inf(1), []outbound.Option{outbound.Adaptive()},
		func(t *testing.T, server *pacetest.Server, c *http.Client) {
			client := github.NewClient(c)
			client.DisableRateLimitCheck = true
			client.BaseURL = &url.URL{Scheme: "http", Host: "api.github.com", Path: "/"}
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 25 {
						if _, _, err := client.Repositories.Get(t.Context(), "nextfree", "pace"); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			require.Len(t, server.Accepted(), 200)
			require.Empty(t, server.Refused())
		})
}

// slack-go's typed error comes through with its time, and the next call waits for that. With retries, callers of
// slack-go see no refusal: their bodies, of forms, are sent again.
func TestSlackGo(t *testing.T) {
	refusal := pacetest.Answer{Status: 429, Header: http.Header{"Retry-After": {"30"}},
		Body: `{"ok": false, "error": "ratelimited"}`}
	for _, retries := range []int{0, 3} {
		simulated(t, pacetest.Unlimited(), `{"ok": true, "channel": "C1", "ts": "1.2"}`, 10,
			[]outbound.Option{outbound.WithRetries(retries)}, func(t *testing.T, server *pacetest.Server, c *http.Client) {
				begin := time.Now()
				server.Script(refusal)
				client := slack.New("xoxb-1", slack.OptionAPIURL("http://slack.com/api/"), slack.OptionHTTPClient(c))
				post := func() error {
					_, _, err := client.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("hello", false))
					return err
				}
				if retries == 0 {
					var limited *slack.RateLimitedError
					require.ErrorAs(t, post(), &limited)
					require.Equal(t, 30*time.Second, limited.RetryAfter)
				}
				for range 20 {
					require.NoError(t, post())
				}
				require.Len(t, server.Refused(), 1)
				require.InDelta(t, 30*time.Second, server.Accepted()[0].Sub(begin), float64(time.Second))
				require.Len(t, server.Accepted(), 20)
			})
	}
}
