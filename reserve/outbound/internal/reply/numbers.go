package reply

import (
	"math"
	"net/http"
	"strings"
	"time"
)

const (
	// Longest is the longest wait that is believed: a quota for a month. Beyond it there are only
	// mistakes (such as a time in milliseconds where seconds were meant) and bad intentions.
	Longest = 32 * 24 * time.Hour
	// shortest is the shortest time without permits worth stopping for, where the server may mean a
	// bucket. One that says "0 left, for 1 s" of a bucket that refills 50 times a second does not
	// mean that one should stop for a second: a client that did took 5.9 times as long.
	shortest = 2 * time.Second
	// widest is the longest window whose permits are spread evenly over it. 1000 a day
	// are spent when they are needed, and not one every 86 s.
	widest = 10 * time.Minute
	// narrowest is the shortest rest of a window by which its permits are spread: in whole seconds
	// it says little.
	narrowest = 500 * time.Millisecond
	// skew is how far the local clock may be from the response's Date, which is in whole seconds,
	// to be believed.
	skew = 1500 * time.Millisecond
	// fastest is the highest rate, per second, that is believed.
	fastest = 1e9
	// maxField is how many bytes of a structured field are read; the fields in use have 100.
	maxField = 4096
)

// cached reports whether a response comes from a cache.
func cached(h http.Header) bool {
	if h.Get("X-From-Cache") != "" { // of github.com/gregjones/httpcache
		return true
	}
	age, ok := number(h.Get("Age"))
	return ok && age > 0
}

// serverTime returns the time at which a response was received, by the server's clock if that tells
// and the local one is wrong. Server times compared with that are right however wrong either clock
// is.
func serverTime(h http.Header, received time.Time) time.Time {
	date := h.Get("Date")
	if date == "" {
		return received
	}
	t, err := http.ParseTime(date)
	if off := received.Sub(t); err != nil || off > -skew && off < skew {
		return received
	}
	return t
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

// times returns n units as a time, and a little more than Longest for all that is not believed.
func times(n float64, unit time.Duration) time.Duration {
	d := n * float64(unit)
	if !(d <= float64(Longest)) { // also for NaN
		return Longest + 1
	}
	return max(0, time.Duration(d))
}

// until returns the time from now until then: 0 if it has passed.
func until(then, now time.Time) time.Duration {
	return min(max(0, then.Sub(now)), Longest+1)
}
