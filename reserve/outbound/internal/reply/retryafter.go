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
	if t, ok := date(v); ok {
		return believed(until(t, now))
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

// date reads a time in one of HTTP's three forms (RFC 9110, section 5.6.7), or in the one that
// servers written in Go send by mistake, with "UTC" for "GMT".
func date(v string) (time.Time, bool) {
	if t, err := http.ParseTime(v); err == nil {
		return t, true
	}
	if strings.HasSuffix(v, " UTC") { // the only other zone whose offset is known
		t, err := time.Parse(time.RFC1123, v)
		return t, err == nil
	}
	return time.Time{}, false
}
