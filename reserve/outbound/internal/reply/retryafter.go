package reply

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// readRetryAfter reads for how long the server wants to be left alone, from now by its clock.
// Retry-After is RFC 9110, section 10.2.3; the headers in milliseconds are Azure's and
// OpenAI's, and come first because they are more precise. More than [Longest] is malformed.
func readRetryAfter(h http.Header, now time.Time) (after time.Duration, told bool) {
	for _, name := range [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if n, ok := number(h.Get(name)); ok {
			return believed(times(n, time.Millisecond))
		}
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if n, ok := number(v); ok {
		d, _ := delayOrEpoch(n, now)
		return believed(d)
	}
	if d, ok := withUnit(v); ok {
		return believed(d)
	}
	if t, ok := date(v); ok {
		return believed(until(t, now))
	}
	return 0, false
}

// withUnit reads a duration with its unit, as servers send it though no standard has it: "5s", "5 seconds", "2 min".
func withUnit(v string) (time.Duration, bool) {
	if d, err := time.ParseDuration(v); err == nil {
		return d, d >= 0
	}
	n, unit, _ := strings.Cut(v, " ")
	f, ok := number(n)
	switch {
	case !ok:
	case strings.HasPrefix(unit, "sec"):
		return times(f, time.Second), true
	case strings.HasPrefix(unit, "min"):
		return times(f, time.Minute), true
	case strings.HasPrefix(unit, "hour"):
		return times(f, time.Hour), true
	}
	return 0, false
}

func believed(d time.Duration) (time.Duration, bool) {
	if d > Longest {
		return 0, false
	}
	return d, true
}

// Numbers that are too large for a delay in seconds are points in time: 1e9 s are 31
// years, and 1e9 s after 1970 was in 2001. Docker Hub puts such into Retry-After.
const (
	leastEpoch       = 1e9
	leastEpochMillis = 1e12 // or the year 33658
)

// delayOrEpoch reads a number of seconds, or a point in time in seconds or
// milliseconds since 1970, and reports whether it was one.
func delayOrEpoch(n float64, now time.Time) (d time.Duration, epoch bool) {
	since1970 := float64(now.UnixNano()) / 1e6
	switch {
	case n >= leastEpochMillis:
		return times(n-since1970, time.Millisecond), true
	case n >= leastEpoch:
		return times(n-since1970/1000, time.Second), true
	case math.Abs(n-since1970/1000) <= Longest.Seconds(): // before 2001: a clock that is wrong, or a simulated one
		return times(n-since1970/1000, time.Second), true
	default:
		return times(n, time.Second), false
	}
}

// date reads a time in one of HTTP's three forms (RFC 9110, section 5.6.7), in the one that
// servers written in Go send by mistake, with "UTC" for "GMT", or in those of RFC 3339 and of Jira.
func date(v string) (time.Time, bool) {
	if t, err := http.ParseTime(v); err == nil {
		return t, true
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(form, v); err == nil {
			return t, true
		}
	}
	if strings.HasSuffix(v, " UTC") { // the only other zone whose offset is known
		t, err := time.Parse(time.RFC1123, v)
		return t, err == nil
	}
	return time.Time{}, false
}
