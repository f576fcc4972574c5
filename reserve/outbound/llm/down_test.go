package llm

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

// One of two real deployments is down, or answers nobody: each of 400 calls is answered. Their addresses have no path.
func TestDeploymentDown(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/chat/completions", r.URL.Path)
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	defer up.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"broken": nil,
		"500":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"401":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
		"404":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
	} {
		t.Run(name, func(t *testing.T) {
			down := httptest.NewServer(answer)
			if answer == nil {
				down.Close()
			}
			defer down.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			address := func(s string) *url.URL { return reserve.Must(url.Parse(s)) }
			l := Limits{RequestsPerMinute: 100_000, TokensPerMinute: 100_000_000}
			transport, err := NewDeployments(base, []Deployment{
				{Provider: OpenAI(), Base: address(down.URL), Limits: l}, {Provider: OpenAI(), Base: address(up.URL), Limits: l},
			})
			require.NoError(t, err)
			client := &http.Client{Transport: transport}
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 50 {
						response, err := client.Post("https://api.openai.com/v1/chat/completions", "application/json",
							strings.NewReader(`{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}`))
						require.NoError(t, err)
						require.Equal(t, 200, response.StatusCode)
						_, _ = io.Copy(io.Discard, response.Body)
						response.Body.Close()
					}
				})
			}
			all.Wait()
		})
	}
}
