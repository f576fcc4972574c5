package llm

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve/outbound"
)

func TestCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if strings.Contains(string(b), "stream") {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}],\"usage\":null}\n\n")
			w.(http.Flusher).Flush()
			fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,\"total_tokens\":12}}\n\ndata: [DONE]\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"x","usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"prompt_tokens_details":{"cached_tokens":0}}}`)
	}))
	defer server.Close()
	var settled []string
	tr, err := New(nil, OpenAI(), Limits{RequestsPerMinute: 100, TokensPerMinute: 10000}, WithOutbound(outbound.WithHooks(outbound.Hooks{
		Settled: func(_ *http.Request, limit string, estimated, used int) {
			settled = append(settled, fmt.Sprint(limit, estimated, used))
		}})))
	require.NoError(t, err)
	client := &http.Client{Transport: tr}
	for _, body := range []string{`{"model":"gpt-5","messages":[{"role":"user","content":"Say hello to me"}],"max_tokens":40}`,
		`{"model":"gpt-5","messages":[{"role":"user","content":"Say hello to me"}],"max_tokens":40,"stream":true}`} {
		resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		t.Log(string(b))
	}
	t.Log(settled, tr.Ignored())
	for k, a := range tr.table.accounts {
		t.Log(k, a.limits[tokens].own.Stored(), a.limits[requests].own.Stored(), a.users, a.going.Load())
	}
}
