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
	reset            string // of a bucket: until it is full
}

// headers are read with every preset. Together's and OpenRouter's (x-ratelimit-limit) tell no unit of time, and
// Anthropic's -tokens- repeats the closest of its others: they are not read.
//
//	OpenAI, Azure OpenAI, Groq   x-ratelimit-limit-requests, -tokens (Groq's requests are of a day: see inDays)
//	Mistral                      x-ratelimit-limit-req-minute, -tokens-minute
//	Cerebras                     x-ratelimit-limit-requests-minute, -tokens-minute (and -day, -hour)
//	Anthropic                    anthropic-ratelimit-requests-limit, -input-tokens-, -output-tokens-
var headers = []header{
	named(requests, "X-Ratelimit-*-Requests"), named(tokens, "X-Ratelimit-*-Tokens"),
	named(requests, "X-Ratelimit-*-Req-Minute"), named(requests, "X-Ratelimit-*-Requests-Minute"),
	named(tokens, "X-Ratelimit-*-Tokens-Minute"), named(requests, "Anthropic-Ratelimit-Requests-*"),
	named(inputTokens, "Anthropic-Ratelimit-Input-Tokens-*"),
	named(outputTokens, "Anthropic-Ratelimit-Output-Tokens-*"),
}

func named(k kind, pattern string) header {
	of := func(word string) string { return strings.Replace(pattern, "*", word, 1) }
	return header{k, of("Limit"), of("Remaining"), of("Reset")}
}

// inDays returns the kind that a header tells if its limit is a day's, as Groq's of requests: the time until it is full
// again shows how long it takes to refill all of it. It takes half a day at least; false: that is not known.
func (h *header) inDays(of http.Header, n, left int32) (daily, known bool) {
	v := of[h.reset]
	if len(v) == 0 || left >= n || left < 0 || h.kind != requests {
		return false, false
	}
	full, err := time.ParseDuration(v[0])
	if err != nil || full <= 0 {
		return false, false
	}
	refill := full.Hours() * float64(n) / float64(n-left)
	return refill >= 12 && refill <= 48, true
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
		a.of.ignored.add(badLimit)
		return 0, false
	}
	return int32(min(v, math.MaxInt32)), true
}
