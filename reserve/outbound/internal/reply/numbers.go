package reply

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// Longest is the longest wait that is believed: a month's quota.
	Longest = 32 * 24 * time.Hour
	// shortest is the shortest stop if the server may mean a bucket.
	shortest = 2 * time.Second
	// widest is the longest window whose permits are spread evenly.
	widest = 10 * time.Minute
	// narrowest is the shortest rest of a window that tells a rate.
	narrowest = 500 * time.Millisecond
	// skew is how far the local clock may be from the response's Date, which is in whole seconds.
	skew    = 1500 * time.Millisecond
	fastest = 1e9
	// maxField bounds the bytes of a structured field.
	maxField = 4096
)

func cachedFor(h http.Header) (age time.Duration, cached bool) {
	n, _ := number(get(h, "Age"))
	return times(n, time.Second), n > 0 || get(h, "X-From-Cache") != "" // of github.com/gregjones/httpcache
}

type clock struct {
	of       http.Header
	received time.Time     // by the local clock
	age      time.Duration // in a cache
}

// now returns the time of receipt, by Date if the local clock is wrong.
func (c clock) now() time.Time {
	date := get(c.of, "Date")
	if date == "" {
		return c.received
	}
	t, err := http.ParseTime(date)
	t = t.Add(c.age)
	if off := c.received.Sub(t); err != nil || off > -skew && off < skew {
		return c.received
	}
	return t
}

// number reads digits with at most one decimal point between them. It may return +Inf.
func number(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789.") != "" || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64) // fails for digits between others, and for too many
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// times returns n units as a time, at most a little more than Longest.
func times(n float64, unit time.Duration) time.Duration {
	d := n * float64(unit)
	if !(d <= float64(Longest)) { // also for NaN
		return Longest + 1
	}
	return max(0, time.Duration(d))
}

func until(then, now time.Time) time.Duration {
	return min(max(0, then.Sub(now)), Longest+1)
}
