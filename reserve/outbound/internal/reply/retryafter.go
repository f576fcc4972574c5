package reply

import (
	"math"
	"net/http"
	"regexp"
	"strings"
	"time"
)

var retryAfters = []string{
	"Retry-After-Ms", "X-Ms-Retry-After-Ms", "Grpc-Retry-Pushback-Ms", "X-Amz-Retry-After", "Retry-After",
	"X-Ratelimit-Retry-After", "X-Rate-Limit-Retry-After-Seconds", "X-Retry-After",
	"X-Ogw-Ratelimit-Reset", "Gw-Ratelimit-Reset",
}

// readRetryAfter reads Retry-After (RFC 9110, 10.2.3), after more precise milliseconds, and before other spellings.
func readRetryAfter(h http.Header, clock clock, s *Reply) {
	for _, name := range retryAfters {
		for _, v := range h[name] { // the longest counts
			if strings.HasSuffix(name, "-Ms") || name == "X-Amz-Retry-After" || name == "Gw-Ratelimit-Reset" {
				v += "ms"
			}
			s.retryAfter(v, clock)
		}
		if s.Told {
			return
		}
	}
}

func (s *Reply) retryAfter(v string, clock clock) {
	after, point, ok := untilThen(v, clock)
	if !point {
		after = max(0, after-clock.age)
	}
	if ok && after <= Longest && (!s.Told || after > s.After) {
		s.After, s.Told, s.Undated = after, true, point && get(clock.of, "Date") == ""
	}
}

// untilThen reads seconds from now or since 1970 (an epoch), a duration ("6m0s", "5 seconds"), or a date.
func untilThen(v string, clock clock) (d time.Duration, epoch, ok bool) {
	if v = strings.Trim(v, " \t\""); v == "" {
		return 0, false, false
	}
	if n, ok := number(v); ok {
		d, epoch = delayOrEpoch(n, clock.now())
		return d, epoch, true
	}
	if d, ok := withUnit(v); ok {
		return d, false, true
	}
	t, ok := date(v)
	return until(t, clock.now()), true, ok
}

// withUnit reads a duration with its unit, which no standard of HTTP has: "5s", "5 seconds", "2 Min", "PT1M30S".
func withUnit(v string) (time.Duration, bool) {
	v = strings.TrimPrefix(strings.ToLower(v), "pt")
	if d, err := time.ParseDuration(v); err == nil {
		return d, d >= 0
	}
	says := unit.FindStringSubmatch(v)
	if says == nil {
		return 0, false
	}
	n, ok := number(says[1])
	return times(n, units[says[2]]), ok
}

// Wait returns for how long a text tells to wait: "36s", "Please try again in 11.05s"; 0: it does not.
func Wait(text string) time.Duration {
	if says := inWords.FindStringSubmatch(text); says != nil {
		text = says[1]
	}
	d, _ := withUnit(text)
	return d
}

var (
	unit  = regexp.MustCompile(`^([\d.]+) ?(ms|mil|sec|min|hour|day)`)
	units = map[string]time.Duration{"ms": time.Millisecond, "mil": time.Millisecond, "sec": time.Second,
		"min": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
)

// delayOrEpoch reads seconds, or seconds, milliseconds or microseconds since 1970 (Docker Hub's).
func delayOrEpoch(n float64, now time.Time) (d time.Duration, epoch bool) {
	since1970 := float64(now.UnixNano()) / 1e9
	switch {
	case n >= 1e15:
		return times(n-since1970*1e6, time.Microsecond), true
	case n >= 1e12: // or the year 33658
		return times(n-since1970*1e3, time.Millisecond), true
	case n >= 1e9, math.Abs(n-since1970) <= Longest.Seconds(): // or a clock before 2001
		return times(n-since1970, time.Second), true
	default:
		return times(n, time.Second), false
	}
}

// date reads the forms of RFC 9110 (5.6.7), with "UTC" too (a mistake of servers in Go), RFC 3339, Jira's, and
// databases'.
func date(v string) (time.Time, bool) {
	if t, err := http.ParseTime(v); err == nil {
		return t, true
	}
	for _, form := range []string{
		time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", time.DateTime,
		time.RFC1123, time.RFC1123Z,
	} {
		if t, err := time.Parse(form, v); err == nil && (form != time.RFC1123 || strings.HasSuffix(v, " UTC")) {
			return t, true
		}
	}
	return time.Time{}, false
}
