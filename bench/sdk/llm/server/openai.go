package server

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// openAIHeaders says what is left of requests and of tokens, and how long it takes until nothing is
// used: "12ms", "1s", "6m0s".
func openAIHeaders(h http.Header, meters []*meter, now time.Time) {
	for _, m := range meters {
		if m.name != requests && m.name != tokens {
			continue
		}
		h.Set("X-Ratelimit-Limit-"+m.name, strconv.Itoa(m.said))
		h.Set("X-Ratelimit-Remaining-"+m.name, strconv.Itoa(max(0, m.said-m.limit+m.left(now))))
		h.Set("X-Ratelimit-Reset-"+m.name, m.untilFull(now).Round(time.Millisecond).String())
	}
}

func refuseOpenAI(w http.ResponseWriter, c *call, why *refusal) {
	unit, kind := "tokens per min (TPM)", "tokens"
	if why.limit == requests {
		unit, kind = "requests per min (RPM)", "requests"
	}
	message := fmt.Sprintf("Rate limit reached for %s in organization org-1 on %s: Limit %d, Used %d, Requested %d. Please try again in %v. Visit https://platform.openai.com/account/rate-limits to learn more.",
		c.model, unit, why.allowed, why.allowed-why.left, why.asked, why.wait.Round(time.Millisecond))
	if why.larger {
		message = fmt.Sprintf("Request too large for %s in organization org-1 on %s: Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
			c.model, unit, why.allowed, why.asked)
	} else {
		retryAfter(w.Header(), why.wait)
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(ceil(why.wait, time.Millisecond), 10))
	}
	writeJSON(w, http.StatusTooManyRequests, object{"error": object{
		"message": message, "type": kind, "param": nil, "code": "rate_limit_exceeded"}})
}

func retryAfter(h http.Header, wait time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(ceil(wait, time.Second), 10))
}

// ceil returns a time in units, rounded up.
func ceil(d, unit time.Duration) int64 { return int64(math.Ceil(float64(d) / float64(unit))) }

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
		"prompt_tokens_details":     object{"cached_tokens": c.cached, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	}
}

func (c *call) finish() string {
	if c.cut() {
		return "length"
	}
	return "stop"
}

func answerChat(c *call) object {
	return object{
		"id": "chatcmpl-1", "object": "chat.completion", "created": c.at.Unix(), "model": c.model,
		"choices": []object{{
			"index": 0, "message": object{"role": "assistant", "content": reply(c.reply), "refusal": nil}, "logprobs": nil, "finish_reason": c.finish(),
		}},
		"usage": c.chatUsage(),
	}
}

func streamChat(e *events, c *call) {
	chunk := func(choices []object, usage object) {
		o := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": c.at.Unix(), "model": c.model, "choices": choices}
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
	chunk(choice(object{}, c.finish()), nil)
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
	return object{"object": "list", "data": data, "model": c.model, "usage": object{"prompt_tokens": c.prompt, "total_tokens": c.prompt}}
}
