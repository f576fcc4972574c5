package reply

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"time"
)

func decode(body []byte, to any) bool { return json.Unmarshal(body, to) == nil }

// spendCap reads Anthropic's spending limit: 429 without Retry-After.
func spendCap(r *http.Response, body []byte) (Refusal, bool) {
	var b struct {
		Type  string
		Error struct{ Type string }
	}
	if !decode(body, &b) || b.Type != "error" || b.Error.Type != "rate_limit_error" && b.Error.Type != "overloaded_error" {
		return Refusal{}, false
	}
	return Refusal{Final: r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") == ""}, true
}

// retryAfterInBody reads Discord's refusals.
func retryAfterInBody(_ *http.Response, body []byte) (Refusal, bool) {
	var b struct {
		RetryAfter float64 `json:"retry_after"`
		Global     any
	}
	if !decode(body, &b) || !(b.RetryAfter > 0) {
		return Refusal{}, false
	}
	return Refusal{RetryAfter: times(b.RetryAfter, time.Second), Whole: b.Global == true}, true
}

// telegram reads a bot's refusals: core.telegram.org/bots/api#responseparameters.
func telegram(_ *http.Response, body []byte) (Refusal, bool) {
	var b struct {
		Parameters struct {
			RetryAfter float64 `json:"retry_after"`
		}
	}
	if !decode(body, &b) || !(b.Parameters.RetryAfter > 0) {
		return Refusal{}, false
	}
	return Refusal{RetryAfter: times(b.Parameters.RetryAfter, time.Second)}, true
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
