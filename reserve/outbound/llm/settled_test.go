package llm

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The usage of each call is told once, cached input apart, whatever limits there are and however the call ends.
func TestWithUsage(t *testing.T) {
	for _, c := range []struct {
		name     string
		provider Provider
		limits   Limits
		response func() *http.Response // nil: the connection breaks
		want     []Usage
	}{
		{"OpenAI", OpenAI(), Limits{TokensPerMinute: 1e6}, func() *http.Response {
			return says(200, `{"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":60}}}`)
		}, []Usage{{100, 60, 7}}},
		{"OpenAI's responses, no limit", OpenAI(), Limits{}, func() *http.Response {
			return says(200, `{"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":60},"output_tokens":7}}`)
		}, []Usage{{100, 60, 7}}},
		{"Azure, which does not settle", AzureOpenAI(), Limits{TokensPerMinute: 1e6}, func() *http.Response {
			return says(200, `{"usage":{"prompt_tokens":100,"completion_tokens":7}}`)
		}, []Usage{{100, 0, 7}}},
		{"Anthropic", Anthropic(), Limits{InputTokensPerMinute: 1e6}, func() *http.Response {
			return says(200, `{"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":70,"output_tokens":7}}`)
		}, []Usage{{100, 70, 7}}},
		{"Gemini, no limit of tokens", Gemini(), Limits{RequestsPerMinute: 5}, func() *http.Response {
			return says(200, `{"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":3,"thoughtsTokenCount":4,"totalTokenCount":107}}`)
		}, []Usage{{100, 60, 7}}},
		{"Bedrock", Bedrock(), Limits{}, func() *http.Response {
			return says(200, `{"usage":{"inputTokens":30,"outputTokens":7,"cacheReadInputTokens":50,"cacheWriteInputTokens":20}}`)
		}, []Usage{{100, 50, 7}}},
		{"refused", OpenAI(), Limits{TokensPerMinute: 1e6}, func() *http.Response { return says(429, `{}`) }, []Usage{{}}},
		{"rejected, no limit", OpenAI(), Limits{}, func() *http.Response { return says(400, `{}`) }, []Usage{{}}},
		{"a failure", OpenAI(), Limits{TokensPerMinute: 1e6}, func() *http.Response { return says(500, `{}`) }, []Usage{{0, 0, 40}}},
		{"no response", OpenAI(), Limits{TokensPerMinute: 1e6}, func() *http.Response { return nil }, []Usage{{0, 0, 40}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			var got []Usage
			transport, err := New(answer(func(*http.Request, string) *http.Response { return c.response() }), c.provider, c.limits,
				WithUsage(func(key Key, u Usage) {
					mu.Lock()
					defer mu.Unlock()
					require.Equal(t, "m", key.Model)
					got = append(got, u)
				}))
			require.NoError(t, err)
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a/models/m:generateContent", strings.NewReader(`{"model":"m","max_tokens":40}`))
			if response, err := transport.RoundTrip(r); err == nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
				response.Body.Close()
			}
			require.Equal(t, c.want, got)
			transport.requireOver(t)
		})
	}
	_, err := New(nil, OpenAI(), Limits{}, WithUsage(nil))
	require.EqualError(t, err, "llm: WithUsage is <nil>; want a function")
}

// Input that is read from a cache counts where the user says so.
func TestCacheReadsCount(t *testing.T) {
	for n, opts := range [][]Option{{WithBucket(0)}, {WithBucket(0), CacheReadsCount()}} {
		transport, err := New(answer(func(*http.Request, string) *http.Response {
			return says(200, `{"usage":{"input_tokens":500,"cache_read_input_tokens":20000,"output_tokens":1}}`)
		}), Anthropic(), Limits{InputTokensPerMinute: 1e6, RequestsPerMinute: 100, OutputTokensPerMinute: 1e6}, opts...)
		require.NoError(t, err)
		_, err = post(transport, "https://a/v1/messages", `{"model":"m","max_tokens":5}`)
		require.NoError(t, err)
		require.Equal(t, []int{500, 20500}[n], transport.held(inputTokens))
	}
}

// What breaks before its first word is charged its prompt and what its kind puts out, and not its max_tokens; what ends
// with an error is charged what came of it.
func TestBrokenBeforeTheFirstWord(t *testing.T) {
	const most = 32_000
	overloaded := "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
	for _, c := range []struct {
		name     string
		kind     string // of responses
		response string
		want     int // of a prompt of 100 tokens and some
		stops    bool
	}{
		{"closed after the headers", sse, "", 100 + 700, false},
		{"closed after a word", sse, `data: {"choices":[{"delta":{"content":" and"}}]}` + "\n\n", 101, false},
		{"Anthropic's overload", sse, overloaded, 0, true},
		{"OpenAI's response that failed", sse, `data: {"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded"},"usage":null}}` + "\n\n", 0, true},
		{"OpenRouter's error in a 200", doc, `{"error":{"code":429,"message":"slow down"},"choices":[]}`, 0, true},
		{"an error of another kind", sse, `data: {"type":"error","error":{"type":"api_error"}}` + "\n\n", 0, false},
		{"an overload after a word", sse, `data: {"choices":[{"delta":{"content":" and"}}]}` + "\n\n" + overloaded, 101, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				text := `data: {"usage":{"prompt_tokens":100,"completion_tokens":700}}` + "\n\n"
				form := sse
				transport, err := New(answer(func(*http.Request, string) *http.Response { return says(200, text, "Content-Type: "+form) }), OpenAI(),
					Limits{RequestsPerMinute: 1000, TokensPerMinute: 1e6})
				require.NoError(t, err)
				body := fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":%d,"messages":["%s"]}`, most, strings.Repeat("abc ", 100))
				_, err = post(transport, api, body)
				require.NoError(t, err)
				before := transport.held(tokens)
				require.Equal(t, 800, before)
				text, form = c.response, c.kind
				_, err = post(transport, api, body)
				require.NoError(t, err)
				require.InDelta(t, c.want, transport.held(tokens)-before, 5)
				begin := time.Now()
				_, err = post(transport, api, body)
				require.NoError(t, err)
				require.Equal(t, c.stops, time.Since(begin) == time.Second, time.Since(begin))
			})
		})
	}
}

// A response in the background tells its usage when it is asked for. Its kind learns that, and what it used more than it
// was charged is charged, once.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		transport, err := New(answer(func(r *http.Request, _ string) *http.Response {
			if r.Method == http.MethodGet {
				if strings.HasSuffix(r.URL.Path, "/resp_1") && n < 3 {
					return says(200, `{"id":"resp_1","status":"in_progress","usage":null}`)
				}
				return says(200, `{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":15000,"output_tokens":5000,"total_tokens":20000}}`)
			}
			n++
			return says(200, fmt.Sprintf(`{"id":"resp_%d","status":"queued","background":true,"usage":null}`, n))
		}), OpenAI(), Limits{RequestsPerMinute: 1000, TokensPerMinute: 1e6})
		require.NoError(t, err)
		ask := func() {
			_, err := post(transport, "https://a/v1/responses", `{"model":"m","background":true,"input":"abcd"}`)
			require.NoError(t, err)
		}
		get := func(id string) {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://a/v1/responses/"+id, nil)
			response, err := transport.RoundTrip(r)
			require.NoError(t, err)
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Contains(t, string(text), `"resp_1"`)
			response.Body.Close()
		}
		ask()
		get("resp_1")
		require.Less(t, transport.held(tokens), 1000)
		ask()
		ask()
		get("resp_1")
		get("resp_1")
		require.InDelta(t, 20_000, transport.held(tokens), 1500)
		ask()
		require.InDelta(t, 40_000, transport.held(tokens), 12_000, "the next one is known")
		get("resp_unknown_1")
		require.Zero(t, transport.Ignored().Missing)
		transport.requireOver(t)
	})
}

// Files are estimated by their kind and size, and calls with them do not spoil the estimates of others.
func TestFiles(t *testing.T) {
	file := func(head string, n int) string {
		return base64.StdEncoding.EncodeToString(append([]byte(head), make([]byte, n)...))
	}
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"a PDF of 30 pages, Anthropic", `{"source":{"type":"base64","data":"` + file("%PDF-1.7", 1_500_000) + `","media_type":"application/pdf"}}`, 60_000},
		{"a PDF, OpenAI", `{"file":{"file_data":"data:application/pdf;base64,` + file("%PDF-1.7", 1_500_000) + `"}}`, 60_000},
		{"a PNG", `{"image_url":{"url":"data:image/png;base64,` + file("\x89PNG", 1_500_000) + `"}}`, 1000},
		{"a WebP", `{"data":"` + file("RIFF1234WEBP", 1_500_000) + `"}`, 1000},
		{"a minute of WAVE", `{"input_audio":{"data":"` + file("RIFF1234WAVE", 960_000) + `","format":"wav"}}`, 1200},
		{"a minute of MP3", `{"inlineData":{"mimeType":"audio/mp3","data":"` + file("ID3", 960_000) + `"}}`, 1200},
		{"a text", `{"file":{"file_data":"data:text/plain;base64,` + file("abcd", 4000) + `"}}`, 1000},
	} {
		var p prompt
		_, err := p.read(strings.NewReader(`{"model":"m","messages":[{"content":[`+c.body+`]}]}`), true, false)
		require.NoError(t, err)
		require.InEpsilon(t, c.want, p.input, 0.05, c.name)
		require.Equal(t, 1, p.blobs)
	}
	synctest.Test(t, func(t *testing.T) {
		transport, err := New(answer(func(_ *http.Request, body string) *http.Response {
			if strings.Contains(body, "JVBER") {
				return used(60_000, 0)
			}
			return used(100, 0)
		}), OpenAI(), Limits{RequestsPerMinute: 1000, TokensPerMinute: 1e6})
		require.NoError(t, err)
		text := fmt.Sprintf(`{"model":"m","max_tokens":1,"messages":["%s"]}`, strings.Repeat("abc ", 100))
		for range 5 {
			post(transport, api, text)
			post(transport, api, `{"model":"m","max_tokens":1,"data":"`+file("%PDF-1.7", 20_000)+`"}`)
		}
		c := transport.account("m").classOf(kindOfCall{"completions", false, false, false})
		input := c.expect(&prompt{input: 100}, 0).input
		require.InDelta(t, 104, input, 10)
	})
}

func (t *Transport) account(model string) *account {
	for key, a := range t.table.accounts {
		if key.Model == model {
			return a
		}
	}
	return nil
}

// Images are counted as asked for, in calls to /images/ alone.
func TestImages(t *testing.T) {
	transport, err := New(answer(func(*http.Request, string) *http.Response { return used(1, 1) }), OpenAI(), Limits{ImagesPerMinute: 10})
	require.NoError(t, err)
	for _, c := range []struct {
		address, body string
		held          int
	}{
		{api, `{"model":"m","n":4}`, 0},
		{"https://api.openai.com/v1/images/generations", `{"model":"m","prompt":"a","n":3}`, 3},
		{"https://api.openai.com/v1/images/generations", `{"model":"m","prompt":"a"}`, 4},
	} {
		_, err := post(transport, c.address, c.body)
		require.NoError(t, err)
		require.Equal(t, c.held, transport.held(images))
	}
}

// Bedrock's InvokeModel tells the usage in headers, whatever the model's body has.
func TestUsageInHeaders(t *testing.T) {
	transport, err := New(answer(func(*http.Request, string) *http.Response {
		return says(200, `{"outputs":[{"text":"a"}]}`, "X-Amzn-Bedrock-Input-Token-Count: 30", "X-Amzn-Bedrock-Output-Token-Count: 12")
	}), Bedrock(), Limits{TokensPerMinute: 1e6})
	require.NoError(t, err)
	_, err = post(transport, "https://bedrock-runtime.eu-west-1.amazonaws.com/model/mistral.mistral-7b/invoke", `{"prompt":"a"}`)
	require.NoError(t, err)
	require.Equal(t, 42, transport.held(tokens))
}
