package llm

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type header struct {
	kind             kind
	limit, remaining string
	reset            string // until a bucket is full, or a period ends
}

// headers are read with every preset, but not x-ratelimit-limit (Together's, OpenRouter's), which tells no unit of
// time, nor Anthropic's -tokens-, which repeats others of its headers.
var headers = []header{
	named(requests, "X-Ratelimit-*-Requests"), named(tokens, "X-Ratelimit-*-Tokens"),
	named(requests, "X-Ratelimit-*-Req-Minute"), named(requests, "X-Ratelimit-*-Requests-Minute"),
	named(tokens, "X-Ratelimit-*-Tokens-Minute"),
	named(dayRequests, "X-Ratelimit-*-Requests-Day"), named(dayTokens, "X-Ratelimit-*-Tokens-Day"),
	named(requests, "Anthropic-Ratelimit-Requests-*"), named(inputTokens, "Anthropic-Ratelimit-Input-Tokens-*"),
	named(outputTokens, "Anthropic-Ratelimit-Output-Tokens-*"),
}

func named(k kind, pattern string) header {
	of := func(word string) string { return strings.Replace(pattern, "*", word, 1) }
	return header{k, of("Limit"), of("Remaining"), of("Reset")}
}

// span is how a limit is counted.
type span uint8

const (
	unknown   span = iota
	minutely       // as all limits a minute are
	dayBucket      // it is full after the reset: Groq's
	dayPeriod      // it ends with the reset: Cerebras'
)

// day returns how a header's limit is counted: what is used of a bucket shows how long it takes to refill all of it,
// and no limit a minute takes half a day.
func (h *header) day(of http.Header, n, left int32) (f span, reset time.Duration) {
	v := of[h.reset]
	if len(v) == 0 || left >= n || left < 0 || h.kind != requests && !h.kind.isDay() {
		return unknown, 0
	}
	reset, err := time.ParseDuration(v[0])
	if err != nil {
		reset, err = time.ParseDuration(v[0] + "s")
	}
	refill := reset.Hours() * float64(n) / float64(n-left)
	switch {
	case err != nil || reset <= 0:
		return unknown, 0
	case refill >= 12 && refill <= 48:
		return dayBucket, reset
	case reset >= 12*time.Hour || h.kind.isDay():
		return dayPeriod, reset
	}
	return minutely, reset
}

const mostLimit = 1 << 40

// number reads a header. Azure says -1, or a limit of 0, for "not known".
func (a *account) number(h http.Header, name string, least int64) (n int32, ok bool) {
	values := h[name]
	if len(values) == 0 {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSpace(values[0]), 10, 64)
	switch {
	case err == nil && v < least && v >= -1:
		return 0, false
	case err != nil || v < least || v > mostLimit:
		a.of.ignored.add(&a.of.ignored.Limits)
		return 0, false
	}
	return int32(min(v, math.MaxInt32)), true
}
