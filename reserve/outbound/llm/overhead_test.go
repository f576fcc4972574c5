//go:build !race

package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// constant answers each call in the same way.
type constant struct {
	response http.Response
	text     string
}

func (c *constant) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	response := c.response
	response.Request, response.Body = r, io.NopCloser(strings.NewReader(c.text))
	return &response, nil
}

func chat() *constant {
	return &constant{http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}},
		`{"id":"chatcmpl-1","object":"chat.completion","created":1763765000,"model":"gpt-5","choices":[{"index":0,"message":` +
			`{"role":"assistant","content":"` + strings.Repeat("It is a fine day. ", 20) + `"},"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":130,"completion_tokens":100,"total_tokens":230}}`}
}

// ask makes one call, as a client does: with a context that can be cancelled.
func ask(tb testing.TB, t http.RoundTripper, buffer []byte) {
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, "https://api.openai.com/v1/chat/completions", strings.NewReader(question))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header["Authorization"] = authorized
	response, err := t.RoundTrip(r)
	if err != nil {
		tb.Fatal(err)
	}
	for err == nil {
		_, err = response.Body.Read(buffer)
	}
	response.Body.Close()
}

var authorized = []string{"Bearer sk-proj-0123456789012345678901234567890123456789"}

// unlimited is more than the benchmarks use.
var wide = Limits{RequestsPerMinute: 1 << 30, TokensPerMinute: 1 << 30}

// A call without a stream costs at most 27 allocations more than one without pace.
func TestOverhead(t *testing.T) {
	transport, err := New(chat(), OpenAI(), wide)
	require.NoError(t, err)
	buffer := make([]byte, 4096)
	base := chat()
	bare := testing.AllocsPerRun(1000, func() { ask(t, base, buffer) })
	paced := testing.AllocsPerRun(1000, func() { ask(t, transport, buffer) })
	t.Logf("%v allocations, and %v without pace", paced, bare)
	require.LessOrEqual(t, paced, bare+27)
}

// One call without a stream, with and without pace: at most 10 us more.
func BenchmarkCall(b *testing.B) {
	transport, err := New(chat(), OpenAI(), wide)
	require.NoError(b, err)
	buffer := make([]byte, 4096)
	for name, t := range map[string]http.RoundTripper{"bare": chat(), "paced": transport} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask(b, t, buffer)
			}
		})
	}
}

// A piece of a stream: at most 5 us for each.
func BenchmarkPiece(b *testing.B) {
	for _, c := range []struct {
		name     string
		provider Provider
		form     string
		text     string
	}{
		{"OpenAI", OpenAI(), sse, openAIChunk},
		{"Anthropic", Anthropic(), sse, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n"},
		{"Gemini", Gemini(), sse, `data: {"candidates":[{"content":{"parts":[{"text":"` + strings.Repeat("It is a fine day. ", 20) + `"}],"role":"model"}}],` +
			`"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":7,"totalTokenCount":17,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}]}}` + "\r\n\r\n"},
		{"Bedrock", Bedrock(), amazon, frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello"},"p":"abcdefghijkl"}`)},
		{"JSON", OpenAI(), doc, strings.Repeat(`{"choices":[{"index":0,"message":{"content":"It is a fine day."}}]}`, 8)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ignored ignored
			var of counter
			of.begin(&ignored)
			body := bodyOf(&http.Response{Header: http.Header{"Content-Type": {c.form}}}, &of)
			piece := []byte(c.text)
			b.SetBytes(int64(len(piece)))
			b.ReportAllocs()
			for b.Loop() {
				body.write(piece)
			}
		})
	}
}
