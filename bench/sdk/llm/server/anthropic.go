package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// anthropicHeaders says what is left of each limit, and when nothing will be used.
func anthropicHeaders(h http.Header, meters []*meter, now time.Time) {
	h.Set("Request-Id", "req_1")
	for _, m := range meters {
		name := "Anthropic-Ratelimit-" + m.name
		left := max(0, m.left(now))
		if m.name != requests {
			left = (left + 500) / 1000 * 1000 // as they say
		}
		h.Set(name+"-Limit", strconv.Itoa(m.limit))
		h.Set(name+"-Remaining", strconv.Itoa(min(left, m.limit)))
		h.Set(name+"-Reset", now.Add(m.untilFull(now)).UTC().Format(time.RFC3339))
	}
}

func refuseAnthropic(w http.ResponseWriter, c *call, why *refusal) {
	if !why.larger {
		retryAfter(w.Header(), why.wait)
	}
	writeJSON(w, http.StatusTooManyRequests, object{"type": "error", "request_id": "req_1", "error": object{
		"type": "rate_limit_error",
		"message": fmt.Sprintf("This request would exceed your organization's rate limit of %d %s per minute (org: 1, model: %s).",
			why.allowed, strings.ReplaceAll(why.limit, "-", " "), c.model),
	}})
}

func parseMessages(c *call, _ *http.Request, body object) {
	c.most = number(body, "max_tokens")
	c.read(text(body["system"]) + text(body["messages"]))
	c.counted = c.prompt - c.cached
}

func (c *call) messagesUsage(output int) object {
	return object{
		"input_tokens": c.prompt - c.cached, "cache_creation_input_tokens": 0, "cache_read_input_tokens": c.cached,
		"output_tokens": output, "service_tier": "standard",
	}
}

func (c *call) messagesStop() string {
	if c.cut() {
		return "max_tokens"
	}
	return "end_turn"
}

func (c *call) claude(content []object, stop any, output int) object {
	return object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": c.model, "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": c.messagesUsage(output),
	}
}

func answerMessages(c *call) object {
	return c.claude([]object{{"type": "text", "text": reply(c.reply)}}, c.messagesStop(), c.reply)
}

func streamMessages(e *events, c *call) {
	send := func(kind string, fields object) {
		fields["type"] = kind
		e.send(kind, fields)
	}
	send("message_start", object{"message": c.claude([]object{}, nil, 1)})
	send("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	send("ping", object{})
	e.chunks(func(piece string, _ int) {
		send("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": piece}})
	})
	send("content_block_stop", object{"index": 0})
	send("message_delta", object{
		"delta": object{"stop_reason": c.messagesStop(), "stop_sequence": nil}, "usage": object{"output_tokens": c.reply},
	})
	send("message_stop", object{})
}
