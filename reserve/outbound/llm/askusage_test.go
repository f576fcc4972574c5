package llm

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// With the option, a stream is asked for its usage, and the caller sees neither the question nor the answer.
func TestAskForUsage(t *testing.T) {
	event := func(more string) string {
		return `data: {"choices":[{"delta":{"content":"a \"usage\": null, \"usage\":null"}}]` + more + `}` + "\n\n"
	}
	last := `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}}` + "\n\n"
	filter := `data: {"choices":[],"prompt_filter_results":[]}` + "\n\n"
	long := `data: {"choices":[{"delta":{"content":"` + strings.Repeat("long ", 40_000) + `"}}]}` + "\n\n"
	done := "data: [DONE]\n\n"
	chat := `{"model":"m","stream":true,"messages":[]}`
	for _, c := range []struct {
		name, address, body string
		asked               bool
		comes, seen         string
	}{
		{"a stream", api, chat, true, event(`,"usage":null`) + last + done, event("") + done},
		{"Azure", api, chat, true, filter + event(`, "usage": null`) + last + done, filter + event("") + done},
		{"CRLF", api, chat, true, strings.ReplaceAll(event("")+last+done, "\n", "\r\n"), strings.ReplaceAll(event("")+done, "\n", "\r\n")},
		{"long", api, chat, true, long + event("") + last + done, long + event("") + done},
		{"cut off", api, chat, true, event("") + last[:20], event("") + last[:20]},
		{"asked by the caller", api, `{"stream":true,"stream_options":{"include_usage":true},"model":"m"}`, false, event("") + last + done, event("") + last + done},
		{"not wanted by the caller", api, `{"stream":true,"stream_options":{"include_usage":false},"model":"m"}`, false, event("") + done, event("") + done},
		{"no stream", api, `{"model":"m"}`, false, `{}`, `{}`},
		{"a response", "https://a/v1/responses", chat, false, event("") + done, event("") + done},
	} {
		for _, getBody := range []bool{true, false} {
			var sent string
			var length int64
			transport, err := New(answer(func(r *http.Request, body string) *http.Response {
				sent, length = body, r.ContentLength
				form := doc
				if strings.HasPrefix(c.comes, "data") {
					form = sse
				}
				response := says(200, "", "Content-Type: "+form)
				response.Body = io.NopCloser(oneByOne{strings.NewReader(c.comes)})
				return response
			}), OpenAI(), Limits{RequestsPerMinute: 10, TokensPerMinute: 1e6}, AskForUsage())
			require.NoError(t, err)
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, c.address, strings.NewReader(c.body))
			if !getBody {
				r.GetBody = nil
			}
			response, err := transport.RoundTrip(r)
			require.NoError(t, err)
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Equal(t, c.seen, string(text), c.name)
			want := c.body
			if c.asked {
				want = "{" + usageWanted + c.body[1:]
			}
			require.Equal(t, want, sent, c.name)
			require.Equal(t, int64(len(want)), length, c.name)
			if strings.Contains(c.comes, last) {
				require.Equal(t, 30, transport.held(tokens), c.name)
			}
			response.Body.Close()
			transport.requireOver(t)
		}
	}
}

// oneByOne reads in pieces of changing size.
type oneByOne struct{ from io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.from.Read(p[:min(len(p), 17)]) }

func ExampleAskForUsage() {
	transport, err := New(nil, OpenAI(), Limits{RequestsPerMinute: 500, TokensPerMinute: 200_000}, AskForUsage())
	fmt.Println(transport != nil, err)
	// Output: true <nil>
}
