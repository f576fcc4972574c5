package server

import (
	"net/http"
	"strings"

	"github.com/nextfree/pace/reserve/pacetest"
)

// Gemini is Google's API, which says nothing in headers.
var Gemini = API{
	dialect:  func(Quota) pacetest.Dialect { return pacetest.Google },
	formats:  map[string]format{"/v1beta/models/{call}": {parseGemini, answerGemini, streamGemini}},
	requests: 1,
}

func parseGemini(c *call, r *http.Request, body object) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	c.model, c.streamed = model, method == "streamGenerateContent"
	if config, ok := body["generationConfig"].(object); ok {
		c.most = number(config, "maxOutputTokens")
	}
	c.read(text(body["systemInstruction"]) + text(body["contents"]))
}

// gemini returns a piece of the reply, with what has been used up to then.
func (c *call) gemini(piece string, tokens int) object {
	candidate := object{"content": object{"parts": []object{{"text": piece}}, "role": "model"}, "index": 0}
	if tokens == c.reply {
		candidate["finishReason"] = c.finish("MAX_TOKENS", "STOP")
	}
	usage := object{"promptTokenCount": c.prompt, "candidatesTokenCount": tokens, "totalTokenCount": c.prompt + tokens}
	return object{"candidates": []object{candidate}, "usageMetadata": usage, "modelVersion": c.model, "responseId": "1"}
}

func answerGemini(c *call) object { return c.gemini(reply(c.reply), c.reply) }

func streamGemini(e *events, c *call) {
	e.chunks(func(piece string, tokens int) { e.send("", c.gemini(piece, tokens)) })
}
