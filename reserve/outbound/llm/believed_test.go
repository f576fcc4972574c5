package llm

import (
	"context"
	"errors"
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

// A minuteServer allows so many tokens in any minute. It charges a call when it arrives, and answers it as told.
type minuteServer struct {
	tokens int
	cost   func(r *http.Request, body string) int
	reply  func(r *http.Request, body string) *http.Response // nil: the connection breaks

	mu      sync.Mutex
	log     []entry
	refused int
}

func (s *minuteServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	n := s.cost(r, string(body))
	s.mu.Lock()
	now, sum := time.Now(), 0
	for len(s.log) > 0 && now.Sub(s.log[0].at) >= time.Minute {
		s.log = s.log[1:]
	}
	for _, e := range s.log {
		sum += e.tokens
	}
	ok := sum+n <= s.tokens
	if ok {
		s.log = append(s.log, entry{now, n})
	} else {
		s.refused++
	}
	s.mu.Unlock()
	if !ok {
		return says(429, `{"error":{"message":"slow down"}}`, "Retry-After: 1"), nil
	}
	if response := s.reply(r, string(body)); response != nil {
		return response, nil
	}
	return nil, errors.New("broken")
}

// together makes n calls at the same time. Each is made again until it is answered with 200. It returns how long
// all of them took.
func together(t *testing.T, transport *Transport, n int, address string, body func(i int) string) time.Duration {
	begin := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for {
				if status, _ := post(transport, address, body(i)); status == 200 {
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}

// ask returns a chat's body with a prompt of so many tokens.
func chatBody(tokens int, more string) string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%s"}]%s}`, strings.Repeat("abc ", tokens), more)
}

// streamed returns a chat completion as a stream, one token an event.
func streamed(prompt, output int, usage bool) *http.Response {
	var b strings.Builder
	for range output {
		b.WriteString(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" and"}}],"usage":null}` + "\n\n")
	}
	if usage {
		fmt.Fprintf(&b, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", prompt, output, prompt+output)
	}
	b.WriteString("data: [DONE]\n\n")
	return says(200, b.String(), "Content-Type: "+sse)
}

// A stream that tells no usage is charged its estimate, once, and what it put out: it is as fast as one that does.
func TestStreamsWithoutUsage(t *testing.T) {
	calls := 300
	if long() {
		calls = 1000
	}
	for _, output := range []int{100, 20} { // of at most 100
		took := map[bool]time.Duration{}
		for _, usage := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := &minuteServer{
					tokens: 110_000, cost: func(*http.Request, string) int { return 1000 + output },
					reply: func(*http.Request, string) *http.Response { return streamed(1000, output, usage) },
				}
				transport, err := New(s, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: s.tokens})
				require.NoError(t, err)
				took[usage] = together(t, transport, calls, api, func(int) string { return chatBody(1000, `,"max_tokens":100,"stream":true`) })
				require.Zero(t, s.refused, usage)
				t.Log(output, usage, took[usage])
			})
		}
		require.LessOrEqual(t, took[false].Minutes(), 1.1*took[true].Minutes())
	}
}

// Calls that put out nothing hold no output, whether the provider settles or not.
func TestCallsWithoutOutput(t *testing.T) {
	text := strings.Repeat("abc ", 20)
	for _, c := range []struct {
		name, address, body, reply string
		provider                   Provider
	}{
		{"embeddings", "https://a/v1/embeddings", `{"model":"m","input":"` + text + `"}`, `{"data":[],"usage":{"prompt_tokens":20,"total_tokens":20}}`, OpenAI()},
		{"embeddings, Azure", "https://a/openai/deployments/m/embeddings", `{"input":"` + text + `"}`, `{"data":[],"usage":{"prompt_tokens":20,"total_tokens":20}}`, AzureOpenAI()},
		{"moderations", "https://a/v1/moderations", `{"model":"m","input":"` + text + `"}`, `{"results":[]}`, OpenAI()},
		{"speech", "https://a/v1/audio/speech", `{"model":"m","input":"` + text + `"}`, `ID3`, OpenAI()},
		{"embedContent", "https://a/v1beta/models/m:embedContent", `{"content":{"parts":[{"text":"` + text + `"}]}}`, `{"embedding":{"values":[0.1]}}`, Gemini()},
		{"rerank", "https://a/v2/rerank", `{"model":"m","query":"abc ","documents":["` + text[4:] + `"]}`, `{"results":[{"index":0,"relevance_score":0.9}]}`, OpenAI()},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &minuteServer{
				tokens: 20_000, cost: func(*http.Request, string) int { return 20 },
				reply: func(*http.Request, string) *http.Response { return says(200, c.reply) },
			}
			transport, err := New(s, c.provider, Limits{RequestsPerMinute: 1e6, TokensPerMinute: s.tokens})
			require.NoError(t, err)
			took := together(t, transport, 2000, c.address, func(int) string { return c.body })
			t.Log(c.name, took, s.refused)
			require.LessOrEqual(t, took, 2*time.Minute+2*time.Second, c.name)
			require.Zero(t, s.refused, c.name)
		})
	}
}

// State that the server keeps is learned, whatever it comes to.
func TestStateOfTheServer(t *testing.T) {
	text := `"` + strings.Repeat("abc ", 100) + `"`
	for _, c := range []struct{ name, address, body string }{
		{"a response before it", "https://a/v1/responses", `{"model":"m","input":` + text + `,"previous_response_id":"resp_1","max_output_tokens":100}`},
		{"a conversation", "https://a/v1/responses", `{"model":"m","input":` + text + `,"conversation":{"id":"conv_1"},"max_output_tokens":100}`},
		{"a file", "https://a/v1/responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"},{"text":` + text + `}]}],"max_output_tokens":100}`},
		{"an image by URL", api, `{"model":"m","messages":[{"content":[{"type":"image_url","image_url":{"url":"https://x/y.png"}},{"type":"text","text":` + text + `}]}],"max_tokens":100}`},
		{"a stored prompt", "https://a/v1/responses", `{"prompt":{"id":"pmpt_1"},"input":` + text + `,"max_output_tokens":100}`},
		{"a run", "https://a/v1/threads/thread_1/runs", `{"assistant_id":"asst_1","max_completion_tokens":100}`},
		{"cached content", "https://a/v1beta/models/m:generateContent", `{"contents":[{"parts":[{"text":` + text + `}]}],"cachedContent":"cachedContents/1","generationConfig":{"maxOutputTokens":100}}`},
		{"a search", "https://a/v1/responses", `{"model":"m","input":` + text + `,"tools":[{"type":"web_search"}],"max_output_tokens":100}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &minuteServer{
				tokens: 2_000_000, cost: func(*http.Request, string) int { return 20_000 },
				reply: func(*http.Request, string) *http.Response {
					time.Sleep(time.Second)
					return used(19_900, 100)
				},
			}
			transport, err := New(s, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: s.tokens})
			require.NoError(t, err)
			took := together(t, transport, 1000, c.address, func(int) string { return c.body })
			t.Log(c.name, took, s.refused)
			require.LessOrEqual(t, s.refused, 20, c.name)
			require.LessOrEqual(t, took, 12*time.Minute, c.name)
		})
	}
}

// Where no tokens are limited, such calls go at once when the first has told a usage: 20 of 5 s take 10 s.
func TestStateWithoutALimitOfTokens(t *testing.T) {
	for _, p := range []Provider{OpenAI(), Gemini()} {
		synctest.Test(t, func(t *testing.T) {
			transport, err := New(answer(func(*http.Request, string) *http.Response {
				time.Sleep(5 * time.Second)
				return used(100, 100)
			}), p, Limits{RequestsPerMinute: 1000})
			require.NoError(t, err)
			took := together(t, transport, 20, "https://a/v1/responses", func(int) string {
				return `{"model":"m","input":"hi","previous_response_id":"resp_1"}`
			})
			require.LessOrEqual(t, took, 10*time.Second)
		})
	}
}

// What names no model is paced by what its address says, and its usage is read in any form.
func TestCallsWithoutModel(t *testing.T) {
	claude := `{"usage":{"input_tokens":10,"output_tokens":20}}`
	for _, c := range []struct {
		provider                   Provider
		address, body, reply, name string
	}{
		{Anthropic(), "https://v/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict", `{"max_tokens":50}`, claude, "claude"},
		{Gemini(), "https://v/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", `{"max_tokens":50}`, claude, "claude"},
		{Anthropic(), "https://b/model/claude-1/invoke", `{"max_tokens":50}`, claude, "claude-1"},
		{OpenAI(), "https://x/openai/deployments/d1/chat/completions", `{"max_tokens":50}`, `{"usage":{"prompt_tokens":10,"completion_tokens":20}}`, "d1"},
		{OpenAI(), "https://x/v1/responses", `{"prompt":{"id":"p"},"max_output_tokens":50}`, `{"usage":{"input_tokens":10,"output_tokens":20}}`, ""},
		{OpenAI(), "https://x/v1/threads/t1/runs", `{"assistant_id":"a","max_completion_tokens":50}`, `{"usage":{"prompt_tokens":10,"completion_tokens":20}}`, ""},
		{OpenAI(), "https://x/v2/chat", `{"model":"command","max_tokens":50}`, `{"usage":{"billed_units":{"input_tokens":5,"output_tokens":20},"tokens":{"input_tokens":10,"output_tokens":20}}}`, "command"},
		{OpenAI(), "https://x/v1/chat", `{"model":"command","max_tokens":50}`, `{"text":"a","meta":{"tokens":{"input_tokens":10,"output_tokens":20}}}`, "command"},
		{OpenAI(), "https://x/api/chat", `{"model":"llama","options":{"num_predict":50}}`, "{\"done\":false}\n{\"done\":true,\"prompt_eval_count\":10,\"eval_count\":20}\n", "llama"},
	} {
		transport, err := New(answer(func(*http.Request, string) *http.Response { return says(200, c.reply) }), c.provider,
			Limits{RequestsPerMinute: 10, TokensPerMinute: 1e6}, WithBucket(0))
		require.NoError(t, err)
		_, err = post(transport, c.address, c.body)
		require.NoError(t, err)
		require.Len(t, transport.table.accounts, 1, c.address)
		for key := range transport.table.accounts {
			require.Equal(t, c.name, key.Model, c.address)
		}
		require.Equal(t, 1, transport.held(requests), c.address)
		require.Equal(t, 30, transport.held(tokens), c.address)
	}
}

// brokenAttempts makes 400 calls of 1,100 tokens, of whose attempts two of three break or are answered with a status,
// against a limit of 110,000.
func brokenAttempts(t *testing.T, status int, opts ...Option) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n := 0
		s := &minuteServer{
			tokens: 110_000, cost: func(*http.Request, string) int { return 0 },
			reply: func(*http.Request, string) *http.Response {
				mu.Lock()
				n++
				broken := n%3 != 0
				mu.Unlock()
				switch {
				case !broken:
					return used(1000, 100)
				case status > 0:
					return says(status, "{}")
				default:
					return nil
				}
			},
		}
		transport, err := New(s, OpenAI(), Limits{RequestsPerMinute: 1e6, TokensPerMinute: s.tokens}, opts...)
		require.NoError(t, err)
		took = together(t, transport, 400, api, func(int) string { return chatBody(1000, `,"max_tokens":100`) })
	})
	return took
}

func TestBrokenAttempts(t *testing.T) {
	for _, status := range []int{0, 500} {
		by := brokenAttempts(t, status)
		require.LessOrEqual(t, by, 12*time.Minute+5*time.Second, "three attempts are charged once each")
		refunded := brokenAttempts(t, status, RefundFailures())
		require.LessOrEqual(t, refunded, 4*time.Minute+15*time.Second)
		t.Log(status, by, refunded)
	}
}

// An Anthropic stream that breaks, or is left, is charged what it put out.
func TestBrokenStreams(t *testing.T) {
	text := "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n" +
		strings.Repeat("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" and\"}}\n\n", 1500)
	for _, cancelled := range []bool{false, true} {
		transport, err := New(answer(func(*http.Request, string) *http.Response { return says(200, text, "Content-Type: "+sse) }), Anthropic(),
			Limits{RequestsPerMinute: 10, OutputTokensPerMinute: 1e6}, WithBucket(0))
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "https://a/v1/messages", strings.NewReader(`{"model":"m","max_tokens":4000,"stream":true}`))
		response, err := transport.RoundTrip(r)
		require.NoError(t, err)
		io.Copy(io.Discard, response.Body)
		if !cancelled {
			response.Body.Close()
		}
		cancel()
		require.InDelta(t, 1500, transport.held(outputTokens), 150)
	}
}

// A stream that is left before it has put out anything keeps what was held for its output.
func TestStreamLeftAtOnce(t *testing.T) {
	transport, err := New(answer(func(*http.Request, string) *http.Response {
		return says(200, "data: {\"type\":\"response.content_part.added\",\"part\":{\"text\":\"\"}}\n\n", "Content-Type: "+sse)
	}), OpenAI(), Limits{RequestsPerMinute: 10, TokensPerMinute: 1e6})
	require.NoError(t, err)
	_, err = post(transport, "https://a/v1/responses", `{"model":"m","max_output_tokens":400,"stream":true}`)
	require.NoError(t, err)
	require.Equal(t, 400, transport.held(tokens))
}

// Hexadecimal text is no image.
func TestHexIsText(t *testing.T) {
	for _, p := range []Provider{OpenAI(), AzureOpenAI()} {
		synctest.Test(t, func(t *testing.T) {
			s := &minuteServer{
				tokens: 600_000, cost: func(*http.Request, string) int { return 22_000 },
				reply: func(*http.Request, string) *http.Response {
					time.Sleep(time.Second)
					return used(22_000, 0)
				},
			}
			transport, err := New(s, p, Limits{RequestsPerMinute: 1e6, TokensPerMinute: s.tokens})
			require.NoError(t, err)
			hex := strings.Repeat("3fa9c17be20d4586", 2500)
			took := together(t, transport, 200, "https://a/openai/deployments/m/chat/completions", func(int) string {
				return `{"model":"m","max_tokens":1,"messages":[{"content":"` + hex + `"}]}`
			})
			t.Log(took, s.refused)
			require.LessOrEqual(t, s.refused, 5)
		})
	}
}
