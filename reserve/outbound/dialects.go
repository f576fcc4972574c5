package outbound

import (
	"net/http"
	"strings"
	"time"
)

// A dialect is how a family of servers spells how much is left, and until when.
type dialect struct{ remaining, reset string }

// dialects are those in use, in the order in which they are tried. Reset-After is
// Discord's, and safe from wrong clocks; the last three are OpenAI's and Anthropic's
// for requests and Twitter's. (Their tokens are not requests: see WithCost.)
var dialects = []dialect{
	{"X-Ratelimit-Remaining", "X-Ratelimit-Reset-After"},
	{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	{"Ratelimit-Remaining", "Ratelimit-Reset"},
	{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
	{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
	{"X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"},
}

// readDialects reads the first dialect that the server speaks.
func readDialects(h http.Header, now time.Time, s *hints) {
	for _, d := range dialects {
		left, ok := number(h.Get(d.remaining))
		if !ok {
			continue
		}
		if last, ok := reset(h.Get(d.reset), now); ok {
			s.left(left, last)
			return
		}
	}
}

// reset reads when a window ends: as seconds from now, as a point in time in
// seconds or milliseconds since 1970, as a duration ("6m0s"), or as a date. Of a window that
// has ended already nothing is to be learned.
func reset(v string, now time.Time) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	if n, ok := number(v); ok {
		return positive(delayOrEpoch(n, now))
	}
	if d, err := time.ParseDuration(v); err == nil {
		return positive(min(d, longest))
	}
	if t, err := time.Parse(time.RFC3339, v); err == nil {
		return positive(until(t, now))
	}
	if t, ok := date(v); ok {
		return positive(until(t, now))
	}
	return 0, false
}

func positive(d time.Duration) (time.Duration, bool) { return max(0, d), d > 0 }
