package reply

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

func decode(body []byte, to any) bool { return json.Unmarshal(body, to) == nil }

// spendCap reads Anthropic's spending limit: 429 without Retry-After. A gateway may have taken that away.
func spendCap(r *http.Response, body []byte) (Refusal, bool) {
	var b struct {
		Type  string
		Error struct{ Type string }
	}
	if !decode(body, &b) || b.Type != "error" || b.Error.Type != "rate_limit_error" && b.Error.Type != "overloaded_error" {
		return Refusal{}, false
	}
	own := isAt(r, "anthropic.com") || get(r.Header, "Anthropic-Ratelimit-Requests-Limit") != ""
	return Refusal{Final: own && r.StatusCode == http.StatusTooManyRequests && get(r.Header, "Retry-After") == "" &&
		get(r.Header, "Anthropic-Ratelimit-Unified-Reset") == ""}, true
}

// retryAfterInBody reads Discord's refusals, Telegram's (core.telegram.org/bots/api#responseparameters) and Matrix'.
func retryAfterInBody(_ *http.Response, body []byte) (Refusal, bool) {
	var b struct {
		RetryAfter float64 `json:"retry_after"`
		Millis     float64 `json:"retry_after_ms"`
		Global     any
		Parameters struct {
			RetryAfter float64 `json:"retry_after"`
		}
	}
	if !decode(body, &b) {
		return Refusal{}, false
	}
	wait := times(max(b.RetryAfter, b.Parameters.RetryAfter, b.Millis/1000), time.Second)
	return Refusal{RetryAfter: wait, Whole: b.Global == true}, wait > 0
}

// headersInBody reads the headers of the server behind OpenRouter.
func headersInBody(r *http.Response, body []byte) (Refusal, bool) {
	var b struct {
		Error struct {
			Metadata struct{ Headers map[string]string }
		}
	}
	if !decode(body, &b) || len(b.Error.Metadata.Headers) == 0 {
		return Refusal{}, false
	}
	h := http.Header{"Date": r.Header["Date"]}
	for name, value := range b.Error.Metadata.Headers {
		h.Set(name, value)
	}
	return Refusal{headers: h}, true
}

// retryInfo reads google.rpc.RetryInfo and QuotaFailure in a google.rpc.Status.
func retryInfo(_ *http.Response, body []byte) (s Refusal, ok bool) {
	var b googleStatus
	if !decode(body, &b) { // a stream's refusal is in a list
		var list []googleStatus
		if !decode(body, &list) || len(list) == 0 {
			return Refusal{}, false
		}
		b = list[0]
	}
	for _, d := range b.Error.Details {
		wait, err := time.ParseDuration(d.RetryDelay)
		switch {
		case strings.HasSuffix(d.Type, "google.rpc.RetryInfo") && err == nil && wait >= 0 && wait <= Longest:
			s.RetryAfter, ok = wait, true
		case strings.HasSuffix(d.Type, "google.rpc.QuotaFailure"):
			s.Final, ok = s.Final || d.daily(), true
		}
	}
	return s, ok
}

type googleStatus struct {
	Error struct {
		Details []googleDetail
	}
}

type googleDetail struct {
	Type       string `json:"@type"`
	RetryDelay string
	Violations []struct{ QuotaID string }
}

func (d *googleDetail) daily() bool {
	for _, v := range d.Violations {
		if strings.Contains(v.QuotaID, "PerDay") {
			return true
		}
	}
	return false
}

// throttleStatus reads Shopify's refusals of too expensive queries.
func throttleStatus(_ *http.Response, body []byte) (Refusal, bool) {
	var b struct {
		Errors []struct {
			Extensions struct{ Code string }
		}
		Extensions struct {
			Cost struct {
				RequestedQueryCost float64
				ThrottleStatus     struct{ MaximumAvailable, CurrentlyAvailable, RestoreRate float64 }
			}
		}
	}
	if !decode(body, &b) || len(b.Errors) == 0 || b.Errors[0].Extensions.Code != "THROTTLED" {
		return Refusal{}, false
	}
	c := b.Extensions.Cost
	missing := c.RequestedQueryCost - c.ThrottleStatus.CurrentlyAvailable
	switch {
	case c.RequestedQueryCost > c.ThrottleStatus.MaximumAvailable && c.ThrottleStatus.MaximumAvailable > 0:
		return Refusal{Final: true}, true // it will never be available
	case missing > 0 && c.ThrottleStatus.RestoreRate > 0:
		return Refusal{RetryAfter: times(math.Ceil(1000*missing/c.ThrottleStatus.RestoreRate), time.Millisecond)}, true
	default:
		return Refusal{}, true
	}
}

// codeInBody reads the codes of errors in an answer that has nothing else, such as GraphQL's.
func codeInBody(_ *http.Response, body []byte) (s Refusal, ok bool) {
	var b map[string]any
	if !tooMany.Match(body) || !decode(body, &b) || b["ok"] == true {
		return s, false
	}
	for _, key := range [...]string{"data", "result", "results", "response"} {
		if isFull(b[key]) {
			return s, false
		}
	}
	walk("", b, func(key string, value any) {
		switch value := value.(type) {
		case string:
			if slices.Contains(ofCode, key) && tooMany.MatchString(value) {
				ok = true
				s.NotRate = s.NotRate || concurrent.MatchString(value)
				s.Final = s.Final || strings.Contains(strings.ToLower(value), "daily")
			}
		case float64:
			if key == "retry_in_seconds" { // monday.com
				s.RetryAfter = times(value, time.Second)
			}
		}
	})
	return s, ok
}

// tooMany are the codes of GitHub, Slack, Linear, monday.com, Google Maps, Kraken, VK, Salesforce and many others.
var (
	tooMany = regexp.MustCompile(`(?i)rate.?limit|throttl|too.?many.?requests|request.?limit.?exceeded|over_query_limit|` +
		`complexity.?(exception|budget)|daily.?limit.?exceeded|` + concurrent.String())
	concurrent = regexp.MustCompile(`(?i)concurrency.?(limit.?)?exceeded`)
	ofCode     = []string{"code", "type", "status", "error", "error_code", "errorCode", "errcode", "error_msg"}
)

// walk shows the values in objects and lists, each with the key that it is under.
func walk(key string, value any, show func(key string, value any)) {
	switch of := value.(type) {
	case map[string]any:
		for key, value := range of {
			walk(key, value, show)
		}
	case []any:
		for _, value := range of {
			walk(key, value, show)
		}
	default:
		show(key, value)
	}
}

func isFull(value any) (full bool) {
	walk("", value, func(_ string, value any) { full = full || value != nil })
	return full
}

// waitInWords reads the message of a refusal: OpenAI's, Groq's and Gemini's "Please try again in 6m0s", Azure's "retry
// after 26 seconds".
func waitInWords(r *http.Response, body []byte) (Refusal, bool) {
	words := inWords.FindSubmatch(body)
	if words == nil || !refuses(r.StatusCode) {
		return Refusal{}, false
	}
	wait, ok := withUnit(strings.ToLower(string(words[1])))
	return Refusal{RetryAfter: wait}, ok
}

var inWords = regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) ` +
	`((?:\d+(?:\.\d+)?(?:ms|s|m|h))+|\d+(?:\.\d+)? (?:sec|min|hour)[a-z]*)\b`)
