package outbound

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// Hints are what the headers of one response say about how to go on. The zero value
// says nothing.
type hints struct {
	// retryAfter is for how long the server wants to be left alone; it counts only if
	// told, and then 0 means "a time that has passed".
	retryAfter time.Duration
	told       bool
	// stop is for how long nothing is left; 0: something is, or nobody said.
	stop time.Duration
	// slow says that nothing is left for a moment. The moment is too short to stop
	// for: see shortest.
	slow bool
	// rate is what the server allows in requests per second; 0: it did not say.
	rate float64
}

const (
	// longest is the longest wait that is believed. Beyond it there are only mistakes
	// (such as a time in milliseconds where seconds were meant) and bad intentions.
	longest = 366 * 24 * time.Hour
	// shortest is the shortest time without permits worth stopping for. A server that
	// says "0 left, for 1 s" of a bucket that refills 50 times a second does not mean that one
	// should stop for a second: a client that did took 5.9 times as long.
	shortest = 2 * time.Second
	// widest is the longest window whose permits are spread evenly over it. 1000 a day
	// are spent when they are needed, and not one every 86 s.
	widest = 10 * time.Minute
	// maxField is how many bytes of a structured field are read; those in use have 100.
	maxField = 4096
)

// readHints reads the hints in the headers of a response that was received at the given
// time, the most specific ones first. What is malformed is ignored, and what a cache
// answered says nothing about the server.
func readHints(h http.Header, received time.Time) (s hints) {
	if cached(h) {
		return hints{}
	}
	now := serverTime(h, received)
	s.retryAfter, s.told = readRetryAfter(h, now)
	if readDraft(h, &s) {
		return s
	}
	readDialects(h, now, &s)
	return s
}

// cached reports whether a response comes from a cache.
func cached(h http.Header) bool {
	if h.Get("X-From-Cache") != "" { // of github.com/gregjones/httpcache
		return true
	}
	age, ok := number(h.Get("Age"))
	return ok && age > 0
}

// serverTime returns the time at which a response was made, by the server's clock if
// it tells. Server times compared with that are right however wrong either clock is.
func serverTime(h http.Header, received time.Time) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return received
}

// left takes note of what is left: permits that must last for a time.
func (s *hints) left(permits float64, last time.Duration) {
	switch {
	case permits == 0 && last > shortest:
		s.stop = max(s.stop, last)
	case permits == 0:
		s.slow = true
	case last > shortest && last <= widest:
		s.allow(permits / last.Seconds())
	}
}

// allow takes note of a rate; the lowest one counts.
func (s *hints) allow(rate float64) {
	if rate > 0 && (s.rate == 0 || rate < s.rate) {
		s.rate = rate
	}
}

// number reads what consists of digits and perhaps a decimal point, and is not
// negative: what headers call a number. It may come out as +Inf.
func number(s string) (float64, bool) {
	s = strings.TrimSpace(s)
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || point && fraction == "" {
		return 0, false
	}
	n, ok := digits(whole)
	if _, fine := digits(fraction); !ok || !fine {
		return 0, false
	}
	fraction = fraction[:min(len(fraction), 9)] // as far as nanoseconds
	f, _ := digits(fraction)
	return n + f/math.Pow10(len(fraction)), true
}

// digits reads digits. Many of them come out as +Inf.
func digits(s string) (n float64, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = float64(n*10) + float64(s[i]-'0')
	}
	return n, true
}

// times returns n units as a time, at most the longest that is believed.
func times(n float64, unit time.Duration) time.Duration {
	d := n * float64(unit)
	if !(d < float64(longest)) { // also for NaN
		return longest
	}
	return max(0, time.Duration(d))
}

// until returns the time from now until then: 0 if it has passed.
func until(then, now time.Time) time.Duration {
	return min(max(0, then.Sub(now)), longest)
}
