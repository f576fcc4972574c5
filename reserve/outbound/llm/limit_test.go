package llm

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// Limits grow and shrink while calls wait.
func TestSetLimits(t *testing.T) {
	const m = time.Minute
	for _, c := range []struct {
		name  string
		opts  []Option
		from  int
		to    Limits
		model string
		want  time.Duration // when the last of 100 calls goes
	}{
		{"up", nil, 10, Limits{RequestsPerMinute: 1000}, "", 30 * time.Second},
		{"no limit any more", nil, 10, Limits{}, "", 30 * time.Second},
		{"down, for the 90 that wait", nil, 10, Limits{RequestsPerMinute: 9}, "", 10 * m},
		{"of the model", nil, 10, Limits{RequestsPerMinute: 1000}, "m", 30 * time.Second},
		{"of another model", nil, 10, Limits{RequestsPerMinute: 1000}, "n", 9 * m},
		{"of all models, but this one", []Option{WithModel("m", Limits{RequestsPerMinute: 10})}, 1, Limits{RequestsPerMinute: 1000}, "", 9 * m},
		{"up, a bucket", []Option{WithBucket(m)}, 10, Limits{RequestsPerMinute: 1000}, "", 36 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), Gemini(), Limits{RequestsPerMinute: c.from},
					append(c.opts, WithMargin(0))...)
				require.NoError(t, err)
				begin := time.Now()
				var all sync.WaitGroup
				var last atomic.Int64
				for range 100 {
					all.Go(func() {
						_, err := post(transport, api, `{"model":"m"}`)
						require.NoError(t, err)
						last.Store(int64(time.Since(begin)))
					})
				}
				time.Sleep(30 * time.Second)
				if c.model == "" {
					require.NoError(t, transport.SetLimits(c.to))
				} else {
					require.NoError(t, transport.SetModelLimits(c.model, c.to))
				}
				all.Wait()
				require.InDelta(t, c.want.Seconds(), time.Duration(last.Load()).Seconds(), 1)
			})
		})
	}
	transport, err := New(nil, OpenAI(), Limits{})
	require.NoError(t, err)
	for _, err := range []error{transport.SetLimits(Limits{TokensPerMinute: -1}), transport.SetModelLimits("m", Limits{TokensPerMinute: -1})} {
		require.EqualError(t, err, "llm: the limit of tokens is -1; want 0 or more")
		require.ErrorAs(t, err, new(*reserve.ValueError))
	}
}

// Limits that are set while a key's limiters are asked for hold for that key, too.
func TestSetLimitsForANewKey(t *testing.T) {
	var transport *Transport
	transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), Gemini(), Limits{RequestsPerMinute: 5},
		WithLimiters(func(string, Key) reserve.Reserver {
			require.NoError(t, transport.SetLimits(Limits{RequestsPerMinute: 9}))
			return nil
		}))
	require.NoError(t, err)
	_, err = post(transport, api, `{"model":"m"}`)
	require.NoError(t, err)
	require.Equal(t, 9, transport.limitOf(requests))
}

// The user's limit is a ceiling, and what a response has told is followed when the ceiling rises.
func TestSetLimitsAboveWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, err := New(limited(func() (string, string) { return "20", "1000000" }), OpenAI(), Limits{RequestsPerMinute: 5, TokensPerMinute: 1e6}, WithMargin(0))
		require.NoError(t, err)
		_, err = post(transport, api, `{"model":"m"}`)
		require.NoError(t, err)
		require.Equal(t, 5, transport.limitOf(requests))
		require.NoError(t, transport.SetLimits(Limits{RequestsPerMinute: 100, TokensPerMinute: 1e6}))
		require.Equal(t, 20, transport.limitOf(requests))
		require.NoError(t, transport.SetLimits(Limits{}))
		require.Equal(t, 20, transport.limitOf(requests))
	})
}

// The headers of providers, as their documents and their users' logs have them.
func TestHeadersOfProviders(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines string
		want  map[kind]int // what may go in the next minute
	}{
		{"OpenAI", "x-ratelimit-limit-requests: 60|x-ratelimit-limit-tokens: 150000|x-ratelimit-remaining-requests: 59|x-ratelimit-remaining-tokens: 149984|x-ratelimit-reset-requests: 1s|x-ratelimit-reset-tokens: 6m0s",
			map[kind]int{requests: 59, tokens: 149984}},
		{"Azure, which does not know", "x-ratelimit-limit-requests: -1|x-ratelimit-remaining-requests: -1|x-ratelimit-limit-tokens: 0", nil},
		{"Groq", "x-ratelimit-limit-requests: 14400|x-ratelimit-limit-tokens: 18000|x-ratelimit-remaining-requests: 14370|x-ratelimit-remaining-tokens: 17997|x-ratelimit-reset-requests: 2m59.56s|x-ratelimit-reset-tokens: 7.66s",
			map[kind]int{dayRequests: 14370, tokens: 17997}},
		{"Mistral", "x-ratelimit-limit-tokens-minute: 5000000|x-ratelimit-remaining-tokens-minute: 4999911|x-ratelimit-tokens-query-cost: 52|x-ratelimit-limit-req-minute: 720|x-ratelimit-remaining-req-minute: 717",
			map[kind]int{requests: 717, tokens: 4999911}},
		{"Cerebras", "x-ratelimit-limit-requests-day: 14400|x-ratelimit-limit-tokens-minute: 60000|x-ratelimit-remaining-requests-day: 14399|x-ratelimit-remaining-tokens-minute: 59000|x-ratelimit-reset-tokens-minute: 11.382867097854614",
			map[kind]int{dayRequests: 14399, tokens: 59000}},
		{"Anthropic", "anthropic-ratelimit-requests-limit: 50|anthropic-ratelimit-requests-remaining: 49|anthropic-ratelimit-tokens-limit: 40000|anthropic-ratelimit-tokens-remaining: 39000|anthropic-ratelimit-input-tokens-limit: 30000|anthropic-ratelimit-input-tokens-remaining: 29000",
			map[kind]int{requests: 49, inputTokens: 29000}},
		{"Together", "x-ratelimit-limit: 10|x-ratelimit-remaining: 9|x-ratelimit-reset: 1|x-tokenlimit-limit: 3000", nil},
		{"OpenRouter", "X-RateLimit-Limit: 20|X-RateLimit-Remaining: 19|X-RateLimit-Reset: 1741305600000", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1, strings.Split(c.lines, "|")...) }), OpenAI(), Limits{}, WithMargin(0))
			require.NoError(t, err)
			_, err = post(transport, api, `{"model":"m"}`)
			require.NoError(t, err)
			for _, a := range transport.table.accounts {
				for k := range calls {
					want, has := c.want[k]
					require.Equal(t, has, a.isActive(k), fmt.Sprint(c.name, " ", names[k]))
					if has {
						require.Equal(t, want, int(a.limiter(k).Stored()), fmt.Sprint(c.name, " ", names[k]))
					}
				}
			}
		})
	}
}

// One response that says 6m0s makes no day of a minute: 240 calls of 1,000 tokens at 150,000 a minute.
func TestResetIsATime(t *testing.T) {
	for _, always := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := &backend{rpm: 1e6, tpm: 150_000, flight: 20 * time.Millisecond}
			n := 0
			b.says = func(b *backend, h http.Header, now time.Time, refused bool) {
				openAIs(b, h, now, refused)
				if n++; n == 1 || always {
					h.Set("x-ratelimit-reset-tokens", "6m0s")
				}
			}
			r := b.run(t, crowd{name: fmt.Sprint(always), n: 240, tokens: 1000, through: transportTo(t, b, OpenAI(), Limits{})})[0]
			require.Zero(t, r.refused)
			require.Less(t, r.took, 3*time.Minute)
		})
	}
}
