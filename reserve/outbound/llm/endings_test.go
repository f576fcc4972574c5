package llm

import (
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nextfree/pace/reserve"
)

const ndjson = "application/x-ndjson"

// amazonFrame is a frame of AWS's event stream encoding.
func amazonFrame(headers []string, payload string) string {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(binary.BigEndian.AppendUint16(append(h, 7), uint16(len(headers[i+1]))), headers[i+1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, h...), payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// How a response of status 200 ends that is refused, or fails, in its body or stream. A new server is a row. The bodies are
// facts of reports: anthropics/anthropic-sdk-python#1258, XiaomiMiMo/MiMo-Code#2083, router-for-me/CLIProxyAPI#2712,
// lsdefine/GenericAgent#753, QwenLM/qwen-code#3246, vercel/ai#5217, strands-agents/agent-builder#31.
func TestEndings(t *testing.T) {
	exception := func(name string) string {
		return amazonFrame([]string{":message-type", "exception", ":exception-type", name, ":content-type", "application/json"}, `{"message":"Please wait."}`)
	}
	for _, c := range []struct {
		server, kind, body string
		want               ending
	}{
		{"OpenAI, all is well", sse, "data: {\"choices\":[{\"delta\":{\"content\":\"rate_limit\"}}]}\n\ndata: [DONE]\n\n", well},
		{"OpenAI, nested", sse, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"service_unavailable_error\",\"code\":\"server_is_overloaded\"}}\n\n", refusal},
		{"OpenAI, only the type", sse, "data: {\"error\":{\"type\":\"service_unavailable_error\",\"code\":null}}\n\n", refusal},
		{"OpenAI, the Responses API", sse, "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"rate_limit_exceeded\"}}}\n\n", refusal},
		{"OpenAI, the Responses API's event", sse, "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"x\",\"param\":null,\"sequence_number\":2}\n\n", refusal},
		{"OpenAI, another error", sse, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\"}\n\n", failed},
		{"OpenAI, the Responses API, well", doc, `{"id":"r","status":"completed","error":null,"usage":{"input_tokens":1,"output_tokens":1}}`, well},
		{"Azure OpenAI", sse, "data: {\"error\":{\"code\":\"429\",\"message\":\"Requests have exceeded the call rate limit\"}}\n\n", refusal},
		{"Azure OpenAI, in words", sse, "data: {\"error\":{\"code\":\"too_many_requests\",\"message\":\"Too Many Requests\"}}\n\n", refusal},
		{"Anthropic", sse, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", refusal},
		{"Anthropic, another error", sse, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}\n\n", failed},
		{"DashScope", sse, "id:1\nevent:error\n:HTTP_STATUS/429\ndata:{\"request_id\":\"x\",\"code\":\"Throttling.AllocationQuota\",\"message\":\"Allocated quota exceeded\"}\n\n", refusal},
		{"DashScope, in an error", sse, "data: {\"error\":{\"code\":\"Throttling.RateQuota\"}}\n\n", refusal},
		{"DashScope, well", sse, "data:{\"output\":{},\"code\":\"\",\"message\":\"\"}\n\n", well},
		{"Gemini, an event", sse, "data: {\"error\": {\"code\": 503, \"status\": \"UNAVAILABLE\"}}\n\n", refusal},
		{"Gemini, behind the events", sse, "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"Okay\"}]}}]}\r\n\r\n{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n", refusal},
		{"Gemini, a list behind the events", sse, "data: {}\n\n[{\n  \"error\": {\n    \"code\": 429,\n    \"status\": \"RESOURCE_EXHAUSTED\"\n  }\n}\n]", refusal},
		{"Vertex AI, a list", doc, `[{"candidates":[]},{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`, refusal},
		{"vLLM", sse, "data: {\"object\":\"error\",\"message\":\"x\",\"type\":\"TooManyRequests\",\"param\":null,\"code\":429}\n\n", refusal},
		{"vLLM, nested", sse, "data: {\"error\":{\"object\":\"error\",\"message\":\"x\",\"type\":\"ServiceUnavailableError\",\"code\":503}}\n\n", refusal},
		{"TGI", sse, "data:{\"error\":\"Model is overloaded\",\"error_type\":\"overloaded\"}\n\n", refusal},
		{"TGI, another error", sse, "data:{\"error\":\"Request failed during generation\",\"error_type\":\"generation\"}\n\n", failed},
		{"Hugging Face", doc, `{"error":"Model too busy, unable to get response in less than 60 second(s)"}`, refusal},
		{"OpenRouter", doc, `{"error":{"message":"Rate limit exceeded","code":429}}`, refusal},
		{"OpenRouter, a choice", sse, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\",\"error\":{\"code\":429,\"message\":\"x\"}}]}\n\n", refusal},
		{"OpenRouter, another error", sse, "data: {\"choices\":[{\"index\":0,\"finish_reason\":\"error\",\"error\":{\"code\":400,\"message\":\"x\"}}]}\n\n", failed},
		{"Ollama", ndjson, "{\"response\":\"Once\"}\n{\"error\":\"server busy, please try again.  maximum pending requests exceeded\"}\n", refusal},
		{"Ollama, another error", ndjson, "{\"response\":\"Once\"}\n{\"error\":\"an error was encountered while running the model\"}\n", failed},
		{"Ollama, well", ndjson, "{\"response\":\"an error\",\"done\":true,\"eval_count\":3,\"prompt_eval_count\":2}\n", well},
		{"Mistral", doc, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"service_tier_capacity_exceeded"}`, refusal},
		{"Cohere", sse, "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"ERROR\",\"error\":\"too many requests\"}}\n\n", refusal},
		{"Bedrock, throttled", amazon, exception("throttlingException"), refusal},
		{"Bedrock, unavailable", amazon, exception("serviceUnavailableException"), refusal},
		{"Bedrock, another exception", amazon, exception("validationException"), failed},
		{"Bedrock, well", amazon, frame("metadata", `{"usage":{"inputTokens":1,"outputTokens":1}}`), well},
		{"xAI", doc, `{"code":"Some resource has been exhausted","error":"Too many requests for team"}`, refusal},
		{"Fireworks", sse, "data: {\"error\":{\"object\":\"error\",\"type\":\"x\",\"code\":\"RATE_LIMIT_EXCEEDED\"}}\n\n", refusal},
		{"Replicate, words", sse, "data: {\"error\":\"The queue is full\"}\n\n", refusal},
		{"Gemini, words", doc, `{"error":{"code":503,"message":"The model is experiencing high demand"}}`, refusal},
		{"too many at a time", sse, "data: {\"error\":{\"code\":\"too_many_concurrent_requests\"}}\n\n", refusal},
		{"too large", sse, "data: {\"error\":{\"code\":\"too_many_tokens\"}}\n\n", failed},
		{"OpenAI, in words", sse, "data: {\"error\":{\"message\":\"The engine is currently overloaded\",\"type\":\"server_error\",\"code\":null}}\n\n", refusal},
		{"OpenAI, slow down", sse, "data: {\"error\":{\"type\":\"slow_down\",\"code\":null}}\n\n", refusal},
		{"OpenAI, the Responses API in words", sse, "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"Rate limit reached for gpt-5\"}}}\n\n", refusal},
		{"OpenAI, Codex tells its limits", sse, "data: {\"type\":\"codex.rate_limits\",\"rate_limits\":{\"allowed\":true}}\n\n", well},
		{"Anthropic, an error after CRLF that is cut off", sse, "event: error\r\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"mess", refusal},
		{"Mistral, a stream", sse, "data: {\"object\":\"error\",\"message\":\"x\",\"type\":\"rate_limited\",\"param\":null,\"code\":\"1300\"}\n\n", refusal},
		{"Groq", sse, "event: error\ndata: {\"error\":{\"message\":\"llama is currently over capacity\",\"type\":\"internal_server_error\"}}\n\n", refusal},
		{"Groq, another error", sse, "event: error\ndata: {\"error\":{\"message\":\"Failed to call a function\",\"code\":\"tool_use_failed\"}}\n\n", failed},
		{"Zhipu", sse, "data: {\"error\":{\"code\":\"1302\",\"message\":\"x\"}}\n\n", refusal},
		{"MiniMax", doc, `{"base_resp":{"status_code":1002,"status_msg":"rate limit exceeded(RPM)"}}`, refusal},
		{"MiniMax, well", doc, `{"usage":{"total_tokens":15},"base_resp":{"status_code":0,"status_msg":"success"}}`, well},
		{"Qianfan", doc, `{"error_code":336501,"error_msg":"Rate limit reached for RPM"}`, refusal},
		{"DeepSeek", sse, ": keep-alive\n\ndata: {\"error\":{\"message\":\"x\",\"type\":\"server_busy\"}}\n\n", refusal},
		{"NIM", sse, "data: {\"error\":{\"message\":\"Worker queue is full\"}}\n\n", refusal},
		{"text about it", doc, `{"choices":[{"message":{"content":"{\"error\":{\"code\":429}}"}}],"usage":{"prompt_tokens":3}}`, well},
		{"any, error is false", doc, `{"error":false,"code":200,"text":"x"}`, well},
	} {
		t.Run(c.server, func(t *testing.T) {
			for size := 1; size <= len(c.body); size = size*3 + 1 {
				var counter counter
				counter.begin(new(ignored))
				b := bodyOf(&http.Response{Header: http.Header{"Content-Type": {c.kind}}}, &counter)
				for i := 0; i < len(c.body); i += size {
					b.write([]byte(c.body[i:min(i+size, len(c.body))]))
				}
				b.end()
				require.Equal(t, c.want, counter.ending, "in pieces of %d", size)
			}
		})
	}
}

// A refusal in a stream stops the key for a second, or as long as it says, and costs what came out.
func TestRefusalInAStream(t *testing.T) {
	for event, want := range map[string]time.Duration{
		`{"error":{"code":429}}`: time.Second,
		`{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Limit 30000, Used 29000. Please try again in 11.054s. Visit https://x"}}}`: 11054 * time.Millisecond,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"36s"}]}}`:                                                                            36 * time.Second,
		`{"error":{"details":[{"retryDelay":"0.2s"}],"code":429}}`:                                                                                                         time.Second,
		`{"error":{"code":429,"message":"Try again in 3 hours."}}`:                                                                                                         5 * time.Minute,
		`{"error":{"code":"server_error","message":"Retry in 30s."}}`:                                                                                                      0,
	} {
		synctest.Test(t, func(t *testing.T) {
			var times []time.Duration
			begin := time.Now()
			transport := reserve.Must(New(answer(func(*http.Request, string) *http.Response {
				if times = append(times, time.Since(begin)); len(times) == 2 {
					return says(200, "data: {\"choices\":[{\"delta\":{\"content\":\"one two three\"}}]}\n\ndata: "+event+"\n\n", "Content-Type: text/event-stream")
				}
				return used(10, 5)
			}), OpenAI(), Limits{RequestsPerMinute: 1000, TokensPerMinute: 100_000}))
			for range 3 {
				_, err := post(transport, openAIChat, `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}],"max_tokens":5000}`)
				require.NoError(t, err)
			}
			require.Equal(t, []time.Duration{0, 0, want}, times, event)
			require.Less(t, transport.held(tokens), 100)
		})
	}
}
