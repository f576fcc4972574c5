package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// A snapshot names limits and models, and no credential.
func TestSnapshot(t *testing.T) {
	base := snapshotBase(func(r *http.Request) (*http.Response, error) {
		body := `{"usage":{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}}`
		return &http.Response{
			StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	})
	transport := reserve.Must(New(base, OpenAI(), Limits{RequestsPerMinute: 500, TokensPerMinute: 200_000}))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.openai.com/v1/chat/completions",
		strings.NewReader(`{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}`))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer sk-0123456789abcdef")
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())

	names := map[string]float64{}
	for _, l := range transport.Snapshot().Limits {
		names[l.Name] = l.Stored
		require.Contains(t, l.Key, "gpt-5")
		require.NotContains(t, l.Key, "0123456789")
		require.Zero(t, l.Waiting+l.InFlight)
	}
	require.Equal(t, map[string]float64{"requests": 499, "tokens": 199_990}, names)
}

type snapshotBase func(*http.Request) (*http.Response, error)

func (f snapshotBase) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
