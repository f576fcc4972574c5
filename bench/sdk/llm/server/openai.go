package server

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/nextfree/pace/reserve/pacetest"
)

// OpenAI is OpenAI's API.
var OpenAI = API{
	dialect: func(Quota) pacetest.Dialect {
		d := pacetest.OpenAI
		d.Body = func(s pacetest.State) string {
			return fmt.Sprintf(`{"error":{"message":"Rate limit reached for gpt-4o in organization org-1 on %s: Limit %d, `+
				`Requested %d.","type":%q,"param":null,"code":"rate_limit_exceeded"}}`, s.Name, s.Limit, s.Cost, s.Name)
		}
		return d
	},
	formats: map[string]format{
		"/v1/chat/completions": chat,
		"/v1/responses":        {parseResponses, answerResponses, streamResponses},
		"/v1/embeddings":       {parseEmbeddings, answerEmbeddings, nil},
	},
	requests: 1,
}

// Azure is OpenAI's API at Azure, which keeps what a call was charged, and counts requests over 10 s of a minute. Its
// headers tell the limits of a minute.
var Azure = API{
	dialect: func(q Quota) pacetest.Dialect {
		return pacetest.Dialect{RetryAfter: "Retry-After-Ms", Header: http.Header{
			"X-Ratelimit-Limit-Requests": {strconv.Itoa(q.Requests)}, "X-Ratelimit-Limit-Tokens": {strconv.Itoa(q.Tokens)},
		}, Body: func(pacetest.State) string {
			return `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API ` +
				`have exceeded the rate limit of your current pricing tier."}}`
		}}
	},
	formats:  map[string]format{"/openai/deployments/{model}/chat/completions": chat},
	kept:     true,
	requests: 1. / 6,
}

var chat = format{parseChat, answerChat, streamChat}

func parseChat(c *call, r *http.Request, body object) {
	if deployment := r.PathValue("model"); deployment != "" {
		c.model = deployment
	}
	c.most = number(body, "max_completion_tokens", "max_tokens")
	if options, ok := body["stream_options"].(object); ok {
		c.usage, _ = options["include_usage"].(bool)
	}
	c.read(text(body["messages"]))
}

func (c *call) chatUsage() object {
	return object{
		"prompt_tokens": c.prompt, "completion_tokens": c.reply, "total_tokens": c.prompt + c.reply,
	}
}

func answerChat(c *call) object {
	return object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": c.created, "model": c.model,
		"choices": []object{{
			"index": 0, "message": object{"role": "assistant", "content": reply(c.reply), "refusal": nil}, "logprobs": nil,
			"finish_reason": c.finish("length", "stop"),
		}},
		"usage": c.chatUsage(),
	}
}

func streamChat(e *events, c *call) {
	chunk := func(choices []object, usage object) {
		o := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": c.created, "model": c.model,
			"choices": choices}
		if c.usage {
			o["usage"] = usage // null, but for the last
		}
		e.send("", o)
	}
	choice := func(delta object, finish any) []object {
		return []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
	}
	chunk(choice(object{"role": "assistant", "content": ""}, nil), nil)
	e.chunks(func(piece string, _ int) { chunk(choice(object{"content": piece}, nil), nil) })
	chunk(choice(object{}, c.finish("length", "stop")), nil)
	if c.usage {
		chunk([]object{}, c.chatUsage())
	}
	e.sendText("", "[DONE]")
}

func parseEmbeddings(c *call, r *http.Request, body object) {
	parseChat(c, r, body)
	c.read(text(body["input"]))
	c.inputs = 1
	if list, ok := body["input"].([]any); ok {
		c.inputs = len(list)
	}
	c.reply = 0
}

func answerEmbeddings(c *call) object {
	var data []object
	for i := range c.inputs {
		data = append(data, object{"object": "embedding", "index": i, "embedding": []float64{0.25, -0.5, 0.125}})
	}
	return object{"object": "list", "data": data, "model": c.model,
		"usage": object{"prompt_tokens": c.prompt, "total_tokens": c.prompt}}
}
