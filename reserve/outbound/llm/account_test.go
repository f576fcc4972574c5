package llm

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound"
)

// keyOf returns the key of a request.
func keyOf(t *testing.T, p Provider, address, body string, lines ...string) Key {
	var key Key
	transport, err := New(answer(func(*http.Request, string) *http.Response { return says(200, "{}") }), p, Limits{},
		WithLimiters(func(_ string, k Key) reserve.Reserver { key = k; return nil }))
	require.NoError(t, err)
	_, err = post(transport, address, body, lines...)
	require.NoError(t, err)
	return key
}

// Whose quota a request uses.
func TestKeys(t *testing.T) {
	type ask struct{ address, body, lines string }
	for _, c := range []struct {
		name     string
		provider Provider
		one      ask
		model    string
		same     []ask // as one
		others   []ask
	}{
		{"OpenAI", OpenAI(), ask{api, `{"model":"gpt-5"}`, "Authorization: Bearer sk-1"}, "gpt-5",
			[]ask{{"https://api.openai.com/v1/embeddings", `{"input":"a","model":"gpt-5"}`, "Authorization: Bearer sk-1\nUser-Agent: x"}},
			[]ask{{api, `{"model":"gpt-5"}`, "Authorization: Bearer sk-2"}, {api, `{"model":"gpt-5-mini"}`, "Authorization: Bearer sk-1"},
				{api, `{"model":"gpt-5"}`, "Authorization: Bearer sk-1\nOpenAI-Project: p"}, {"https://b/v1", `{"model":"gpt-5"}`, "Authorization: Bearer sk-1"}}},
		{"Azure", AzureOpenAI(), ask{"https://x.openai.azure.com/openai/deployments/d1/chat/completions?api-version=1", `{}`, "api-key: 1"}, "d1",
			[]ask{{"https://x.openai.azure.com/openai/deployments/d1/embeddings", `{"model":"m"}`, "api-key: 1\nAuthorization: Bearer 2"}},
			[]ask{{"https://x.openai.azure.com/openai/deployments/d2/embeddings", `{}`, "api-key: 1"}, {"https://x.openai.azure.com/openai/v1/responses", `{"model":"m"}`, "api-key: 1"}}},
		{"Anthropic", Anthropic(), ask{"https://a/v1/messages", `{"model":"claude"}`, "x-api-key: 1"}, "claude", nil,
			[]ask{{"https://a/v1/messages", `{"model":"claude"}`, "x-api-key: 2"}, {"https://a/v1/messages", `{"model":"claude"}`, "Authorization: Bearer 1"}}},
		{"Gemini", Gemini(), ask{"https://g/v1beta/models/gemini-pro:generateContent", `{}`, "x-goog-api-key: 1"}, "gemini-pro",
			[]ask{{"https://g/v1beta/models/gemini-pro:streamGenerateContent?alt=sse", `{}`, "x-goog-api-key: 1"}, {"https://g/v1/models/gemini-pro:generateContent?key=1", `{}`, "A: b"}},
			[]ask{{"https://g/v1beta/models/gemini-flash:generateContent", `{}`, "x-goog-api-key: 1"}, {"https://g/v1/models/gemini-pro:generateContent?key=2", `{}`, "A: b"}}},
		{"Vertex AI", Gemini(), ask{"https://v/v1/projects/p/locations/l/publishers/google/models/gemini-pro:generateContent", `{}`, "Authorization: Bearer 1"}, "gemini-pro",
			[]ask{{"https://v/v1/projects/p/locations/l/publishers/google/models/gemini-pro:generateContent", `{}`, "Authorization: Bearer 2"}},
			[]ask{{"https://v/v1/projects/q/locations/l/publishers/google/models/gemini-pro:generateContent", `{}`, "Authorization: Bearer 1"}}},
		{"Bedrock", Bedrock(), ask{"https://b/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fx/converse", `{}`, "Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20261121/us-east-1/bedrock/aws4_request, Signature=1"},
			"arn:aws:bedrock:us-east-1:1:inference-profile/x",
			[]ask{{"https://b/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fx/converse-stream", `{}`, "Authorization: AWS4-HMAC-SHA256 Credential=AKIA1/20261122/us-east-1/bedrock/aws4_request, Signature=2"}},
			[]ask{{"https://b/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fx/converse", `{}`, "Authorization: AWS4-HMAC-SHA256 Credential=AKIA2/20261121/us-east-1/bedrock/aws4_request"}}},
		{"Bedrock, temporary", Bedrock(), ask{"https://b/model/m/invoke", `{}`, "Authorization: AWS4-HMAC-SHA256 Credential=ASIA1/x"}, "m",
			[]ask{{"https://b/model/m/invoke", `{}`, "Authorization: AWS4-HMAC-SHA256 Credential=ASIA2/x"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := func(a ask) Key { return keyOf(t, c.provider, a.address, a.body, strings.Split(a.lines, "\n")...) }
			one := of(c.one)
			require.Equal(t, c.model, one.Model)
			for _, a := range c.same {
				require.Equal(t, one, of(a))
			}
			for _, a := range c.others {
				require.NotEqual(t, one, of(a), a)
			}
		})
	}
	long := keyOf(t, OpenAI(), api, `{"model":"`+strings.Repeat("é", 1000)+`"}`, "Authorization: "+strings.Repeat("x", 5000))
	require.LessOrEqual(t, len(long.Model), maxModel+1)
	require.NotEqual(t, long, keyOf(t, OpenAI(), api, `{"model":"`+strings.Repeat("é", 1000)+`"}`, "Authorization: "+strings.Repeat("x", 5001)))
}

// A client that chooses the names of models fills no memory, and slows no key that has a place; idle keys make room.
func TestMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), OpenAI(),
			Limits{RequestsPerMinute: 5, TokensPerMinute: 1e6}, WithMaxKeys(3), WithOutbound(outbound.WithMaxWait(0)))
		require.NoError(t, err)
		call := func(model string) bool {
			_, err := post(transport, api, `{"model":"`+model+`"}`)
			return err == nil
		}
		require.True(t, call("gpt-5"))
		went := 0
		for i := range 100 {
			if call(fmt.Sprint("hostile ", i)) {
				went++
			}
		}
		require.Equal(t, 2+5, went, "keys that find no place share the limits of one")
		require.Len(t, transport.table.accounts, 3)
		for range 4 {
			require.True(t, call("gpt-5"))
		}
		require.False(t, call("gpt-5"))
		time.Sleep(2 * time.Minute)
		for i := range 3 {
			require.True(t, call(fmt.Sprint("new ", i)))
		}
		require.Len(t, transport.table.accounts, 3)
		require.NotNil(t, transport.table.accounts[Key{Host: "api.openai.com", Model: "new 2", Credential: keyOf(t, OpenAI(), api, `{"model":"a"}`).Credential}])
	})
}

// A body that is never closed does not keep its key's place, once nothing is held of its limits.
func TestBodiesThatAreNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, err := New(answer(func(*http.Request, string) *http.Response { return used(30, 30) }), OpenAI(),
			Limits{RequestsPerMinute: 1, TokensPerMinute: 1e6}, WithMaxKeys(4))
		require.NoError(t, err)
		for i := range 4 {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, api, strings.NewReader(fmt.Sprintf(`{"model":"%d"}`, i)))
			_, err := transport.RoundTrip(r) // and its body is not closed
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Minute)
		begin := time.Now()
		for i := range 4 {
			_, err := post(transport, api, fmt.Sprintf(`{"model":"new %d"}`, i))
			require.NoError(t, err)
		}
		require.Zero(t, time.Since(begin), "each has limits of its own")
		require.Zero(t, transport.Ignored().Crowded)
		_, err = post(transport, api, `{"model":"another"}`)
		require.NoError(t, err)
		require.Equal(t, uint64(1), transport.Ignored().Crowded)
	})
}

// Keys of one organization are one quota, if the user says so.
func TestWithKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &minuteServer{
			tokens: 2000, cost: func(*http.Request, string) int { return 20 },
			reply: func(*http.Request, string) *http.Response { return used(10, 10) },
		}
		transport, err := New(s, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: 2000},
			WithKey(func(_ *http.Request, k Key) Key { k.Credential = 0; return k }))
		require.NoError(t, err)
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() {
				status, err := post(transport, api, `{"model":"m","max_tokens":10,"messages":["`+strings.Repeat("abc ", 10)+`"]}`, fmt.Sprintf("Authorization: Bearer %d", i%3))
				require.NoError(t, err)
				require.Equal(t, 200, status)
			})
		}
		all.Wait()
		require.Zero(t, s.refused)
	})
}

// One odd header, of a gateway perhaps, is not obeyed; two in succession are.
func TestOddHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, given := range []Limits{{}, {RequestsPerMinute: 500, TokensPerMinute: 1e6}} {
			n := 0
			transport, err := New(limited(func() (string, string) {
				if n++; n == 5 {
					return "1", "1000000"
				}
				return "500", "1000000"
			}), OpenAI(), given)
			require.NoError(t, err)
			begin := time.Now()
			for range 20 {
				_, err := post(transport, api, `{"model":"m"}`)
				require.NoError(t, err)
			}
			require.Zero(t, time.Since(begin))
			require.Equal(t, uint64(1), transport.Ignored().Limits)
		}
	})
}

// limited is a server that tells its limits, which change.
func limited(limits func() (requests, tokens string)) answer {
	return func(*http.Request, string) *http.Response {
		r, k := limits()
		return used(10, 0, "x-ratelimit-limit-requests: "+r, "x-ratelimit-limit-tokens: "+k, "x-ratelimit-reset-requests: 120ms")
	}
}

// goBy makes calls at the same time, and returns when they went.
func goBy(t *testing.T, transport *Transport, n int) (went []time.Duration) {
	begin := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			_, err := post(transport, api, `{"model":"m"}`)
			require.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			went = append(went, time.Since(begin).Round(time.Second))
		})
	}
	all.Wait()
	return went
}

// Limits that are not given are learned from the first response, while the other calls wait for it. Limits that fall
// are followed, and no server raises one above the user's.
func TestLearnedLimits(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		name  string
		given Limits
		tell  [][2]string // by calls; the last one for all others
		want  []time.Duration
	}{
		{"not given", Limits{}, [][2]string{{"3", "100000"}}, []time.Duration{0, 0, 0, 60 * s, 60 * s}},
		{"tokens not given", Limits{RequestsPerMinute: 100}, [][2]string{{"100", "40"}}, []time.Duration{0, 0, 0, 0, 60 * s}},
		{"not told", Limits{}, [][2]string{{"", ""}}, []time.Duration{0, 0, 0, 0, 0}},
		{"above the user's", Limits{RequestsPerMinute: 3, TokensPerMinute: 1e6}, [][2]string{{"1000000", "1000000000"}}, []time.Duration{0, 0, 0, 60 * s, 60 * s}},
		{"below the user's", Limits{RequestsPerMinute: 1000, TokensPerMinute: 1e6}, [][2]string{{"2", "1000000"}}, []time.Duration{0, 0, 0, 60 * s, 60 * s}},
		{"nonsense", Limits{RequestsPerMinute: 3, TokensPerMinute: 1e6}, [][2]string{{"-1", "0"}, {"x", "99999999999999999999"}, {"NaN", "1e3"}}, []time.Duration{0, 0, 0, 60 * s, 60 * s}},
		{"falls, and comes back", Limits{}, [][2]string{{"4", "100000"}, {"2", "100000"}, {"4", "100000"}}, []time.Duration{0, 0, 60 * s, 60 * s, 60 * s}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				transport, err := New(limited(func() (string, string) {
					tell := c.tell[min(int(calls.Add(1)), len(c.tell))-1]
					return tell[0], tell[1]
				}), OpenAI(), c.given, WithMargin(0), WithSettling(false), WithEstimate(func(*http.Request, []byte) (int, int) { return 10, 0 }))
				require.NoError(t, err)
				if c.name == "below the user's" || strings.HasPrefix(c.name, "falls") { // one after the other, so that each is heeded
					begin := time.Now()
					var went []time.Duration
					for range 5 {
						_, err := post(transport, api, `{"model":"m"}`)
						require.NoError(t, err)
						went = append(went, time.Since(begin).Round(s))
					}
					if c.name == "below the user's" {
						require.Equal(t, []time.Duration{0, 0, 60 * s, 60 * s, 120 * s}, went)
					} else {
						require.Equal(t, c.want, went)
					}
					return
				}
				require.Equal(t, c.want, goBy(t, transport, 5))
			})
		})
	}
}

// A quota of a day that a response tells as that of requests is a bucket: what is left goes at once, and then a call
// each time that one is refilled. None is refused.
func TestLearnedDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used, refused := 0, 0
		var last time.Time // when one was refilled
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			tell := func(status int, lines ...string) *http.Response {
				return says(status, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`, append(lines, "x-ratelimit-limit-requests: 50",
					fmt.Sprint("x-ratelimit-remaining-requests: ", 50-used), fmt.Sprint("x-ratelimit-reset-requests: ", time.Duration(used)*24*time.Hour/50))...)
			}
			for used > 0 && time.Since(last) >= 1728*time.Second {
				used, last = used-1, last.Add(1728*time.Second)
			}
			if used == 50 {
				refused++
				return tell(429, "Retry-After: 1728")
			}
			if used++; used == 1 {
				last = time.Now()
			}
			return tell(200)
		}), OpenAI(), Limits{}, WithMargin(0))
		require.NoError(t, err)
		begin := time.Now()
		for range 60 {
			_, err := post(transport, api, `{"model":"m"}`)
			require.NoError(t, err)
		}
		require.Zero(t, refused)
		require.InDelta(t, 10*1728, time.Since(begin).Seconds(), 60)
	})
}

// A day's limit that no response has told for a day is gone with the first call that the server accepts: it was another
// server's, or a gateway's.
func TestADayThatIsToldNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			if calls++; calls == 1 {
				return used(1, 0, "x-ratelimit-limit-requests-day: 2", "x-ratelimit-remaining-requests-day: 1", "x-ratelimit-reset-requests-day: 86400")
			}
			return used(1, 0)
		}), OpenAI(), Limits{}, WithMargin(0))
		require.NoError(t, err)
		begin := time.Now()
		for range 3 {
			_, err := post(transport, api, `{"model":"m"}`)
			require.NoError(t, err)
		}
		require.InDelta(t, 12, time.Since(begin).Hours(), .1) // half of it is refilled
		time.Sleep(25 * time.Hour)
		begin = time.Now()
		for range 10 {
			_, err := post(transport, api, `{"model":"m"}`)
			require.NoError(t, err)
		}
		require.Less(t, time.Since(begin), time.Second)
	})
}

// A gateway's 404 told a limit of five tokens a minute, for which a call would wait for two hours. A day later one call
// goes, and the others as soon as it has told nothing.
func TestAMinuteThatIsToldNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			if calls++; calls == 1 {
				return says(404, `{}`, "x-ratelimit-limit-tokens: 5")
			}
			return used(500, 0)
		}), OpenAI(), Limits{})
		require.NoError(t, err)
		within := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			_, err := postWithin(ctx, transport, api, `{"model":"m","max_tokens":500}`)
			return err
		}
		require.NoError(t, within())
		require.Error(t, within())
		time.Sleep(25 * time.Hour)
		begin := time.Now()
		for range 10 {
			require.NoError(t, within())
		}
		require.Less(t, time.Since(begin), time.Second)
	})
}

// One of a thousand calls of a day that ends in an hour is left: the others wait until then, whatever the header's name.
func TestADayThatEnds(t *testing.T) {
	for _, of := range []string{"requests-day", "tokens-day", "requests"} {
		synctest.Test(t, func(t *testing.T) {
			begin, ends := time.Now(), time.Hour
			if of == "requests" {
				ends = 13 * time.Hour
			}
			var mu sync.Mutex
			left, n, refused := 996, 0, 0
			sent := func() int {
				mu.Lock()
				defer mu.Unlock()
				return n
			}
			transport, err := New(answer(func(*http.Request, string) *http.Response {
				mu.Lock()
				defer mu.Unlock()
				if n++; n == 4 {
					left = 2
				}
				left--
				rest := ends - time.Since(begin)
				if rest <= 0 {
					left, rest = 500, rest+24*time.Hour
				}
				reset := fmt.Sprint(rest.Seconds())
				if of == "requests" {
					reset = rest.String()
				}
				tell := []string{"x-ratelimit-limit-" + of + ": 1000", fmt.Sprint("x-ratelimit-remaining-", of, ": ", max(0, left)), "x-ratelimit-reset-" + of + ": " + reset}
				if left < 0 {
					refused++
					return says(429, "{}", tell...)
				}
				return used(1, 0, tell...)
			}), OpenAI(), Limits{}, WithMargin(0))
			require.NoError(t, err)
			for i := range 300 {
				go func() {
					time.Sleep(time.Duration(i) * time.Second)
					post(transport, api, `{"model":"m","max_tokens":1}`)
				}()
			}
			time.Sleep(50 * time.Minute)
			require.InDelta(t, 5, sent(), 1)
			time.Sleep(ends + time.Minute - 50*time.Minute)
			require.Equal(t, 300, sent())
			require.Zero(t, refused)
		})
	}
}

// One of a thousand calls a day is left, for 23 hours: no more go than that, and what is refilled.
func TestLittleIsLeftOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		left, n := 1, 0
		sent := func() int {
			mu.Lock()
			defer mu.Unlock()
			return n
		}
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			mu.Lock()
			defer mu.Unlock()
			n++
			left = max(0, left-1)
			return used(1, 1, "x-ratelimit-limit-requests: 1000", fmt.Sprint("x-ratelimit-remaining-requests: ", left), "x-ratelimit-reset-requests: 23h",
				"x-ratelimit-limit-tokens: 1000000", "x-ratelimit-remaining-tokens: 999990", "x-ratelimit-reset-tokens: 1ms")
		}), OpenAI(), Limits{})
		require.NoError(t, err)
		for range 1200 {
			go post(transport, api, `{"model":"m"}`)
		}
		time.Sleep(20 * time.Minute)
		require.LessOrEqual(t, sent(), 15)
		require.GreaterOrEqual(t, sent(), 13)
		require.NoError(t, transport.SetLimits(Limits{RequestsPerDay: 5000}))
		time.Sleep(time.Hour)
		require.LessOrEqual(t, sent(), 15+50, "the server's is lower")
		time.Sleep(50 * 24 * time.Hour)
	})
}

// Limits are learned by the next call if the first one brings nothing, and one that gives up does
// not keep the others.
func TestFirstCallFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			switch calls.Add(1) {
			case 1:
				time.Sleep(time.Second)
				return nil
			case 2:
				return says(401, "{}")
			}
			return used(1, 1, "x-ratelimit-limit-requests: 4")
		}), OpenAI(), Limits{}, WithMargin(0))
		require.NoError(t, err)
		var all sync.WaitGroup
		statuses := make([]int, 8)
		for i := range statuses {
			all.Go(func() { statuses[i], _ = post(transport, api, `{"model":"m"}`) })
		}
		all.Wait()
		require.ElementsMatch(t, []int{0, 401, 200, 200, 200, 200, 200, 200}, statuses)
		require.Equal(t, 4, transport.limitOf(requests))
		transport.requireOver(t)
	})
}

func (t *Transport) limitOf(k kind) int {
	for _, a := range t.table.accounts {
		return int(a.limiter(k).Snapshot().Capacity)
	}
	return 0
}

// Anthropic's limits are told apart, and its limit of all tokens is none of its own.
func TestAnthropicLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			return says(200, `{"usage":{"input_tokens":100,"output_tokens":50}}`, "anthropic-ratelimit-requests-limit: 1000", "anthropic-ratelimit-tokens-limit: 400",
				"anthropic-ratelimit-input-tokens-limit: 300", "anthropic-ratelimit-output-tokens-limit: 100")
		}), Anthropic(), Limits{}, WithMargin(0))
		require.NoError(t, err)
		begin := time.Now()
		var went []time.Duration
		for range 5 {
			_, err := post(transport, "https://a/v1/messages", `{"model":"m","max_tokens":50}`)
			require.NoError(t, err)
			went = append(went, time.Since(begin).Round(time.Second))
		}
		s := time.Second
		require.Equal(t, []time.Duration{0, 0, 30 * s, 60 * s, 90 * s}, went, "output binds")
	})
}

// Azure counts requests over ten seconds, or one, and keeps its estimates.
func TestAzure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			opts   []Option
			limits Limits
			want   time.Duration
		}{
			{nil, Limits{RequestsPerMinute: 60, TokensPerMinute: 1e6}, 10 * time.Second},
			{[]Option{WithRequestWindow(time.Second)}, Limits{RequestsPerMinute: 600, TokensPerMinute: 1e6}, time.Second},
			{nil, Limits{RequestsPerMinute: 1e6, TokensPerMinute: 500}, time.Minute},
		} {
			transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), AzureOpenAI(), c.limits, append(c.opts, WithMargin(0))...)
			require.NoError(t, err)
			begin := time.Now()
			for range 11 {
				_, err := post(transport, "https://x/openai/deployments/d/chat/completions", `{"max_tokens":50}`)
				require.NoError(t, err)
			}
			require.Equal(t, c.want, time.Since(begin))
		}
	})
}

// Models have limits of their own, and a day's hold beside a minute's.
func TestLimitsOfModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), Gemini(), Limits{RequestsPerMinute: 2},
			WithModel("small", Limits{RequestsPerMinute: 100, RequestsPerDay: 3}), WithMargin(0))
		require.NoError(t, err)
		for model, want := range map[string]time.Duration{"large": time.Minute, "small": 24 * time.Hour} {
			begin := time.Now()
			for range 4 {
				_, err := post(transport, "https://g/v1beta/models/"+model+":generateContent", `{}`)
				require.NoError(t, err)
			}
			require.Equal(t, want, time.Since(begin), model)
		}
	})
}

// The estimate of a request, from its body.
func TestEstimates(t *testing.T) {
	for _, c := range []struct {
		provider      Provider
		body          string
		input, output int
		most          bool
	}{
		{OpenAI(), `{"model":"gpt-5","messages":[{"role":"user","content":"` + strings.Repeat("abc ", 100) + `"}],"max_tokens":30}`, 104, 30, true},
		{OpenAI(), `{"model":"m","messages":[],"max_completion_tokens":30,"n":3}`, 0, 90, true},
		{OpenAI(), `{"model":"m","prompt":["` + strings.Repeat("a", 40) + `","b"],"max_tokens":1,"best_of":4,"n":2}`, 14, 4, true},
		{OpenAI(), `{"model":"m","input":"` + strings.Repeat("a", 40) + `","max_output_tokens":7}`, 14, 7, true},
		{OpenAI(), `{"model":"m","input":[[1,2,3],[4,5]]}`, 5, guessedOutput, false},
		{OpenAI(), `{"model":"m","messages":[{"content":[{"image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBORw0KGgo", 1000) + `"}}]}]}`, imageTokens + 1, guessedOutput, false},
		{OpenAI(), `{"model":"m","messages":[{"content":"` + strings.Repeat("語", 1000) + `"}],"max_tokens":1}`, 870, 1, true},
		{OpenAI(), `{"model":"m","max_tokens":99999999999,"n":99999}`, 0, maxTokens, true},
		{OpenAI(), `{"model":"m","max_tokens":99999999999999999999,"n":999}`, 0, guessedOutput * maxChoices, false},
		{Anthropic(), `{"model":"m","system":"abcd","max_tokens":8}`, 2, 8, true},
		{Gemini(), `{"contents":[{"parts":[{"text":"abcdefgh"}]}],"generationConfig":{"maxOutputTokens":9,"candidateCount":2}}`, 3, 18, true},
		{Bedrock(), `{"messages":[{"content":[{"text":"abcdefgh"}]}],"inferenceConfig":{"maxTokens":9}}`, 3, 9, true},
		{OpenAI(), strings.Repeat("x", 400), 100, guessedOutput, false},
	} {
		r := httptest.NewRequest(http.MethodPost, api, strings.NewReader(c.body))
		var p prompt
		_, err := p.readFrom(r, false)
		require.NoError(t, err)
		require.Equal(t, []any{c.input, c.output, c.most}, []any{p.input, p.output, p.most}, c.body[:min(100, len(c.body))])
	}
}
