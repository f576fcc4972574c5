package server

import (
	"net/http"

	"github.com/nextfree/pace/reserve/pacetest"
)

// Anthropic is Anthropic's messages API.
var Anthropic = API{
	dialect:  func(Quota) pacetest.Dialect { return pacetest.Anthropic },
	formats:  map[string]format{"/v1/messages": {parseMessages, answerMessages, streamMessages}},
	requests: 1,
}

func parseMessages(c *call, _ *http.Request, body object) {
	c.most = number(body, "max_tokens")
	c.read(text(body["system"]) + text(body["messages"]))
}

func (c *call) claude(content []object, stop any, output int) object {
	return object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": c.model, "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": object{"input_tokens": c.prompt, "output_tokens": output},
	}
}

func answerMessages(c *call) object {
	return c.claude([]object{{"type": "text", "text": reply(c.reply)}}, c.finish("max_tokens", "end_turn"), c.reply)
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
		"delta": object{"stop_reason": c.finish("max_tokens", "end_turn"), "stop_sequence": nil},
		"usage": object{"output_tokens": c.reply},
	})
	send("message_stop", object{})
}
