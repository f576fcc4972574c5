package server

import "net/http"

// OpenAI's responses API.

func parseResponses(c *call, r *http.Request, body object) {
	parseChat(c, r, body)
	c.most = number(body, "max_output_tokens")
	c.read(text(body["instructions"]) + text(body["input"]))
}

func answerResponses(c *call) object {
	o := c.response(c.finish("incomplete", "completed"), []object{c.message("completed", reply(c.reply))})
	o["usage"] = object{
		"input_tokens":  c.prompt,
		"output_tokens": c.reply,
		"total_tokens":  c.prompt + c.reply,
	}
	return o
}

func (c *call) response(status string, output []object) object {
	return object{
		"id": "resp_1", "object": "response", "created_at": c.created, "status": status, "error": nil, "model": c.model,
		"output": output, "usage": nil, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []object{},
	}
}

func (c *call) message(status, text string) object {
	return object{"type": "message", "id": "msg_1", "status": status, "role": "assistant",
		"content": []object{outputText(text)}}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}}
}

func streamResponses(e *events, c *call) {
	number := 0
	send := func(kind string, fields object) {
		fields["type"], fields["sequence_number"] = kind, number
		number++
		e.send(kind, fields)
	}
	part := func(fields object) object {
		fields["item_id"], fields["output_index"], fields["content_index"] = "msg_1", 0, 0
		return fields
	}
	item := c.message("in_progress", "")
	item["content"] = []object{}
	send("response.created", object{"response": c.response("in_progress", []object{})})
	send("response.in_progress", object{"response": c.response("in_progress", []object{})})
	send("response.output_item.added", object{"output_index": 0, "item": item})
	send("response.content_part.added", part(object{"part": outputText("")}))
	e.chunks(func(piece string, _ int) { send("response.output_text.delta", part(object{"delta": piece})) })
	send("response.output_text.done", part(object{"text": reply(c.reply)}))
	send("response.content_part.done", part(object{"part": outputText(reply(c.reply))}))
	send("response.output_item.done", object{"output_index": 0, "item": c.message("completed", reply(c.reply))})
	send("response."+c.finish("incomplete", "completed"), object{"response": answerResponses(c)})
}
