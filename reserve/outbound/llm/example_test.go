package llm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/nextfree/pace"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/fair"
	"github.com/nextfree/pace/reserve/outbound"
	"github.com/nextfree/pace/reserve/outbound/llm"
	"github.com/nextfree/pace/reserve/shared"
)

// model answers every call.
var model = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"choices":[{"message":{"content":"Hello!"}}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
})

// Five hundred requests and 200,000 tokens a minute. The client is for the provider's SDK.
func Example() {
	server := httptest.NewServer(model)
	defer server.Close()

	transport, err := llm.New(nil, llm.OpenAI(), llm.Limits{RequestsPerMinute: 500, TokensPerMinute: 200_000},
		llm.WithOutbound(outbound.WithHooks(outbound.Hooks{
			Settled: func(_ *http.Request, limit string, estimated, used int) { fmt.Println(limit, estimated, used) },
		})))
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}

	response, err := client.Post(server.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"gpt-5","messages":[{"role":"user","content":"Say hello."}],"max_completion_tokens":100}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	// Output: tokens 110 12
}

// The limits of a model that are not those of the others, and a longest wait, whose refusal an SDK
// does not take for a broken connection.
func ExampleWithModel() {
	transport, err := llm.New(nil, llm.Anthropic(), llm.Limits{RequestsPerMinute: 1000, InputTokensPerMinute: 450_000, OutputTokensPerMinute: 90_000},
		llm.WithModel("claude-haiku-4-5", llm.Limits{RequestsPerMinute: 4000, InputTokensPerMinute: 4_000_000, OutputTokensPerMinute: 800_000}),
		llm.AnswerRefusals(), llm.WithOutbound(outbound.WithMaxWait(5*time.Minute)))
	fmt.Println(transport != nil, err)
	// Output: true <nil>
}

// A model at OpenAI and at Azure, where it has another name, used as one; people before a batch. The client is for
// OpenAI's SDK, whose base URL and key do not count.
func ExampleNewDeployments() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.URL.Path, r.Header.Get("Authorization")+r.Header.Get("Api-Key"), string(body))
		model(w, r)
	}))
	defer server.Close()
	openai, _ := url.Parse(server.URL + "/v1")
	azure, _ := url.Parse(server.URL + "/openai/deployments/sweden?api-version=2024-10-21")

	transport, err := llm.NewDeployments(nil, []llm.Deployment{
		{Provider: llm.OpenAI(), Base: openai, Header: http.Header{"Authorization": {"Bearer sk-1"}},
			Limits: llm.Limits{RequestsPerMinute: 1000, TokensPerMinute: 2_000_000}},
		{Provider: llm.AzureOpenAI(), Base: azure, Header: http.Header{"Api-Key": {"key-2"}},
			Models: map[string]string{"gpt-5": "sweden"}, Limits: llm.Limits{RequestsPerMinute: 600, TokensPerMinute: 1_000_000}},
	}, llm.WithClasses(nil, fair.Class{Name: "people", Priority: 1}, fair.Class{Name: "batch"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	for range 2 {
		ctx := fair.With(context.Background(), "batch", "")
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://any/v1/chat/completions", strings.NewReader(`{"model":"gpt-5","max_tokens":9}`))
		response, err := client.Do(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		response.Body.Close()
	}
	// Output:
	// /v1/chat/completions Bearer sk-1 {"model":"gpt-5","max_tokens":9}
	// /openai/deployments/sweden/chat/completions key-2 {"model":"sweden","max_tokens":9}
}

// redis is the client of a Redis server that all machines use: goredis.Client(redis.NewClient(…)).
var redis shared.Scripter

// Many machines that share one quota: a token bucket in Redis for each limit and key. In any minute it grants what it
// holds and what flows into it: a tenth of the limit, and nine tenths.
func ExampleWithLimiters() {
	const requests, tokens = 500, 200_000
	perMinute := func(n float64) *reserve.Policy {
		return reserve.Must(pace.TokenBucket(reserve.Per(0.9*n, time.Minute), 0.1*n))
	}
	policies := map[string]*reserve.Policy{"requests": perMinute(requests), "tokens": perMinute(tokens)}
	transport, err := llm.New(nil, llm.OpenAI(), llm.Limits{}, llm.WithLimiters(func(limit string, key llm.Key) reserve.Reserver {
		policy := policies[limit]
		if policy == nil {
			return nil
		}
		return reserve.Must(shared.New(redis, limit+"/"+key.String(), policy, shared.WithTimeout(5*time.Second)))
	}))
	fmt.Println(transport != nil, err)
}
