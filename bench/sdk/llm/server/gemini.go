package server

import (
	"fmt"
	"net/http"
	"strings"
)

// Gemini says nothing in headers.

func parseGemini(c *call, r *http.Request, body object) {
	model, method, _ := strings.Cut(r.PathValue("call"), ":")
	c.model, c.streamed = model, method == "streamGenerateContent"
	if config, ok := body["generationConfig"].(object); ok {
		c.most = number(config, "maxOutputTokens")
	}
	c.read(text(body["systemInstruction"]) + text(body["contents"]))
}

// refuseGemini says in the body which quota is exceeded, and until when.
func refuseGemini(w http.ResponseWriter, c *call, why *refusal) {
	metric, id := "generate_content_paid_tier_input_token_count", "GenerateContentPaidTierInputTokensPerModelPerMinute"
	if why.limit == requests {
		metric, id = "generate_content_paid_tier_requests", "GenerateRequestsPerMinutePerProjectPerModel"
	}
	metric = "generativelanguage.googleapis.com/" + metric
	message := fmt.Sprintf("You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: %s, limit: %d, model: %s", metric, why.allowed, c.model)
	details := []object{
		{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []object{{
			"quotaMetric": metric, "quotaId": id, "quotaDimensions": object{"location": "global", "model": c.model}, "quotaValue": fmt.Sprint(why.allowed),
		}}},
		{"@type": "type.googleapis.com/google.rpc.Help", "links": []object{{
			"description": "Learn more about Gemini API quotas", "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
		}}},
	}
	if !why.larger {
		message += fmt.Sprintf("\nPlease retry in %gs.", why.wait.Seconds())
		details = append(details, object{
			"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%.9gs", why.wait.Seconds()),
		})
	}
	writeJSON(w, http.StatusTooManyRequests, object{"error": object{
		"code": http.StatusTooManyRequests, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details,
	}})
}

// gemini returns a piece of the reply, with what has been used up to then.
func (c *call) gemini(piece string, tokens int) object {
	candidate := object{"content": object{"parts": []object{{"text": piece}}, "role": "model"}, "index": 0}
	if tokens == c.reply {
		candidate["finishReason"] = "STOP"
		if c.cut() {
			candidate["finishReason"] = "MAX_TOKENS"
		}
	}
	usage := object{"promptTokenCount": c.prompt, "candidatesTokenCount": tokens, "totalTokenCount": c.prompt + tokens}
	if c.cached > 0 {
		usage["cachedContentTokenCount"] = c.cached
	}
	return object{"candidates": []object{candidate}, "usageMetadata": usage, "modelVersion": c.model, "responseId": "1"}
}

func answerGemini(c *call) object { return c.gemini(reply(c.reply), c.reply) }

func streamGemini(e *events, c *call) {
	e.chunks(func(piece string, tokens int) { e.send("", c.gemini(piece, tokens)) })
}
