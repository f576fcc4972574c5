package llm

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// stopping is a server that refuses for 30 s. The refusal names its limits and what is left, as told says.
type stopping struct {
	begin time.Time
	told  []string

	mu    sync.Mutex
	early int // calls that came within the 30 s
}

func (s *stopping) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := 30*time.Second - time.Since(s.begin)
	if left <= 0 {
		return used(10, 5, s.told...), nil
	}
	s.early++
	return says(429, `{"error":{"message":"Rate limit reached"}}`, append([]string{fmt.Sprintf("Retry-After: %d", int(left.Seconds()+.999))}, s.told...)...), nil
}

var (
	groq = []string{
		"x-ratelimit-limit-requests: 1000", "x-ratelimit-remaining-requests: 960", "x-ratelimit-reset-requests: 57m36s",
		"x-ratelimit-limit-tokens: 12000", "x-ratelimit-remaining-tokens: 11000", "x-ratelimit-reset-tokens: 5s",
	}
	noTokens = []string{"x-ratelimit-limit-tokens: 12000", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 5s"}
)

const openAIChat = "https://api.openai.com/v1/chat/completions"

// The server says for how long it wants no call. Whatever is learned, set or taken away meanwhile, none goes before.
func TestStopsLast(t *testing.T) {
	plain := Limits{RequestsPerMinute: 500}
	both := Limits{RequestsPerMinute: 500, TokensPerMinute: 100_000}
	for _, c := range []struct {
		name     string
		told     []string
		limits   Limits
		meantime func(t *testing.T, transport *Transport)
	}{
		{"nothing", nil, Limits{}, nil},
		{"the refusal tells the limits", groq, Limits{}, nil},
		{"the refusal tells that no tokens are left", noTokens, both, nil},
		{"the limits are given", groq, both, nil},
		{"a limit is set", nil, Limits{}, func(t *testing.T, l *Transport) { require.NoError(t, l.SetLimits(plain)) }},
		{"a limit of tokens is set", nil, plain, func(t *testing.T, l *Transport) { require.NoError(t, l.SetLimits(both)) }},
		{"a limit grows", nil, plain, func(t *testing.T, l *Transport) { require.NoError(t, l.SetLimits(Limits{RequestsPerMinute: 5000})) }},
		{"a limit is taken away", nil, plain, func(t *testing.T, l *Transport) { require.NoError(t, l.SetLimits(Limits{})) }},
		{"all are taken away", noTokens, both, func(t *testing.T, l *Transport) { require.NoError(t, l.SetLimits(Limits{})) }},
		{"the stopped one is taken away", noTokens, both, func(t *testing.T, l *Transport) { require.NoError(t, l.SetLimits(plain)) }},
		{"one is replaced by another", nil, plain, func(t *testing.T, l *Transport) { require.NoError(t, l.SetLimits(Limits{TokensPerMinute: 1e6})) }},
		{"a model gets its own", groq, Limits{}, func(t *testing.T, l *Transport) { require.NoError(t, l.SetModelLimits("m", both)) }},
	} {
		for _, callers := range []int{1, 20} {
			t.Run(fmt.Sprint(c.name, ", callers ", callers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &stopping{begin: time.Now(), told: c.told}
					transport := reserve.Must(New(server, OpenAI(), c.limits))
					var all sync.WaitGroup
					ask := func() { _, _ = post(transport, openAIChat, `{"model":"m","max_tokens":10}`) }
					ask()
					for range callers { // they wait when the limits change
						all.Go(ask)
					}
					synctest.Wait()
					if c.meantime != nil {
						c.meantime(t, transport)
					}
					for range callers { // and these come afterwards
						all.Go(ask)
					}
					all.Wait()
					require.Equal(t, 1, server.early)
				})
			})
		}
	}
}

// A deployment that the server stopped gets no call, whatever it is told of its limits; another serves them.
func TestStopsOfDeploymentsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, others := &stopping{begin: time.Now(), told: groq}, 0
		base := answer(func(r *http.Request, _ string) *http.Response {
			if r.URL.Host != "a.test" {
				others++
				return used(10, 5)
			}
			response, _ := server.RoundTrip(r)
			return response
		})
		at := func(host string) *url.URL { return &url.URL{Scheme: "https", Host: host, Path: "/v1"} }
		transport := reserve.Must(NewDeployments(base, []Deployment{{Provider: OpenAI(), Base: at("a.test")}, {Provider: OpenAI(), Base: at("b.test"), Tier: 1}}))
		for range 10 {
			status, err := post(transport, openAIChat, `{"model":"m","max_tokens":10}`)
			require.NoError(t, err)
			require.Equal(t, 200, status)
		}
		require.Equal(t, 1, server.early)
		require.Equal(t, 10, others)
	})
}
