package matrix

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Kind is a way in which servers limit.
type Kind struct {
	Name  string
	New   func(begin time.Time, s Setting) Judge
	Ideal func(s Setting) time.Duration
	// Places is how many calls the server has room for at a time; nil: any number.
	Places func(s Setting) int
	// Tokens says that calls cost tokens as well: see [TokensOf].
	Tokens bool
	// Undated says that no response has a Date.
	Undated bool
}

// Kinds are those of the table.
var Kinds = []Kind{
	{Name: "token bucket, Retry-After", New: newBucket("1"), Ideal: bucketIdeal},
	{Name: "token bucket, bare 429", New: newBucket(""), Ideal: bucketIdeal},
	{Name: "fixed windows, GitHub's headers", New: newWindows, Ideal: evenIdeal},
	{Name: "sliding log, Retry-After", New: newLog, Ideal: evenIdeal},
	{Name: "falls to a third, comes back", New: newFalling, Ideal: fallingIdeal},
	{Name: "requests and tokens, bucket headers", New: newTokens, Ideal: tokensIdeal, Tokens: true},
	{Name: "n in flight, 503", New: newPlaces(503), Ideal: evenIdeal, Places: places},
	{Name: "n in flight, bare 429", New: newPlaces(429), Ideal: evenIdeal, Places: places},
	{Name: "slower and slower", New: newQueue, Ideal: evenIdeal},
	{Name: "the draft's headers", New: newDraft, Ideal: bucketIdeal},
	{Name: "hostile headers", New: newHostile, Ideal: bucketIdeal},
}

// bucket is a token bucket.
type bucket struct {
	rate, size, level float64
	last              time.Time
}

func fullBucket(begin time.Time, rate, size float64) bucket { return bucket{rate, size, size, begin} }

func (b *bucket) fill(now time.Time) {
	b.level = min(b.size, b.level+b.rate*now.Sub(b.last).Seconds())
	b.last = now
}

func (b *bucket) take(now time.Time, n float64) bool {
	if b.fill(now); b.level < n {
		return false
	}
	b.level -= n
	return true
}

// full returns when it is full.
func (b *bucket) full() time.Duration {
	return time.Duration((b.size - b.level) / b.rate * float64(time.Second))
}

func bucketIdeal(s Setting) time.Duration {
	return time.Duration((float64(s.Calls) - s.Burst) / s.Rate * float64(time.Second))
}

func evenIdeal(s Setting) time.Duration {
	return time.Duration(float64(s.Calls) / s.Rate * float64(time.Second))
}

type judge func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string)

func (j judge) Answer(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
	return j(now, r, h)
}

// newBucket answers 429, with Retry-After or without.
func newBucket(retryAfter string) func(time.Time, Setting) Judge {
	return func(begin time.Time, s Setting) Judge {
		b := fullBucket(begin, s.Rate, s.Burst)
		return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
			if b.take(now, 1) {
				return 0, 200, ""
			}
			if retryAfter != "" {
				h.Set("Retry-After", retryAfter)
			}
			return 0, 429, ""
		})
	}
}

// newWindows counts in windows that begin at whole seconds, with GitHub's headers.
func newWindows(begin time.Time, s Setting) Judge {
	quota := int(s.Rate * s.Window.Seconds())
	var end time.Time
	left := 0
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		if !now.Before(end) {
			end, left = now.Truncate(s.Window).Add(s.Window), quota
		}
		status := 429
		if left > 0 {
			left--
			status = 200
		}
		h.Set("X-RateLimit-Limit", strconv.Itoa(quota))
		h.Set("X-RateLimit-Remaining", strconv.Itoa(left))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(ceil(end), 10))
		return 0, status, ""
	})
}

func ceil(t time.Time) int64 { return int64(math.Ceil(float64(t.UnixNano()) / 1e9)) }

// newLog allows so many calls in any window.
func newLog(begin time.Time, s Setting) Judge {
	quota := int(s.Rate * s.Window.Seconds())
	var log []time.Time
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		for len(log) > 0 && now.Sub(log[0]) >= s.Window {
			log = log[1:]
		}
		if len(log) < quota {
			log = append(log, now)
			return 0, 200, ""
		}
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil((s.Window - now.Sub(log[0])).Seconds()))))
		return 0, 429, ""
	})
}

// The server that falls is at its rate for half of the time that its calls would take, then at a third for as
// long, and then at its rate again.
func falls(s Setting) (from, to time.Duration) {
	half := evenIdeal(s) / 2
	return half, 2 * half
}

func fallingIdeal(s Setting) time.Duration {
	from, to := falls(s)
	return bucketIdeal(s) + (to-from)*2/3
}

func newFalling(begin time.Time, s Setting) Judge {
	b := fullBucket(begin, s.Rate, s.Burst)
	from, to := falls(s)
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		for _, c := range []struct {
			at   time.Duration
			rate float64
		}{{from, s.Rate / 3}, {to, s.Rate}} {
			if at := begin.Add(c.at); now.After(at) && b.last.Before(at) {
				b.fill(at)
				b.rate = c.rate
			}
		}
		if b.take(now, 1) {
			return 0, 200, ""
		}
		h.Set("Retry-After", "1")
		return 0, 429, ""
	})
}

// TokensOf returns how many tokens the call with a number costs: 40 to 120.
func TokensOf(i int) int { return 40 + (i*37)%81 }

const meanTokens = 80

// tokenRates are the limits of the server of requests and tokens: the tokens are what is short.
func tokenRates(s Setting) (requests, tokens float64) { return s.Rate * 1.5, s.Rate * meanTokens }

func tokensIdeal(s Setting) time.Duration {
	_, rate := tokenRates(s)
	sum := 0.
	for i := range s.Calls {
		sum += float64(TokensOf(i))
	}
	return time.Duration((sum - s.Burst*meanTokens) / rate * float64(time.Second))
}

const tokensHeader = "X-Test-Tokens"

func (k Kind) dress(r *http.Request, i int) {
	if k.Tokens {
		r.Header.Set(tokensHeader, strconv.Itoa(TokensOf(i)))
	}
}

func tokensOf(r *http.Request) int {
	n, _ := strconv.Atoi(r.Header.Get(tokensHeader))
	return n
}

// newTokens has a bucket of requests and one of tokens, and OpenAI's headers.
func newTokens(begin time.Time, s Setting) Judge {
	requests, tokens := tokenRates(s)
	rs, ts := fullBucket(begin, requests, s.Burst), fullBucket(begin, tokens, s.Burst*meanTokens)
	return judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
		n := float64(tokensOf(r))
		rs.fill(now)
		ts.fill(now)
		status := 429
		if rs.level >= 1 && ts.level >= n {
			rs.take(now, 1)
			ts.take(now, n)
			status = 200
		}
		for name, b := range map[string]*bucket{"requests": &rs, "tokens": &ts} {
			h.Set("X-Ratelimit-Limit-"+name, strconv.Itoa(int(b.size)))
			h.Set("X-Ratelimit-Remaining-"+name, strconv.Itoa(int(b.level)))
			h.Set("X-Ratelimit-Reset-"+name, b.full().Round(time.Millisecond).String())
		}
		if status == 429 {
			wait := max(1-rs.level, 0)/rs.rate + max(n-ts.level, 0)/ts.rate
			h.Set("Retry-After-Ms", strconv.Itoa(int(math.Ceil(1000*wait))))
		}
		return 0, status, ""
	})
}

// places is how many calls the server has room for: as many as make its rate with 160 ms for each, but
// no more than half of the callers.
func places(s Setting) int { return min(max(2, int(math.Round(s.Rate*0.16))), s.Goroutines/2) }

// newPlaces has room for so many calls at a time.
func newPlaces(status int) func(time.Time, Setting) Judge {
	return func(_ time.Time, s Setting) Judge {
		n := places(s)
		takes := time.Duration(float64(n) / s.Rate * float64(time.Second))
		var busy []time.Time
		return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
			free := busy[:0]
			for _, end := range busy {
				if end.After(now) {
					free = append(free, end)
				}
			}
			if busy = free; len(busy) >= n {
				return 0, status, ""
			}
			busy = append(busy, now.Add(takes))
			return takes, 200, ""
		})
	}
}

// newQueue serves one after the other. Only when there are 4 s of work does it refuse.
func newQueue(begin time.Time, s Setting) Judge {
	each := time.Duration(float64(time.Second) / s.Rate)
	free := begin
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		if free.Before(now) {
			free = now
		}
		if free.Sub(now) > 4*time.Second {
			return 0, 503, ""
		}
		free = free.Add(each)
		return free.Sub(now), 200, ""
	})
}

// newDraft sends the headers of draft-ietf-httpapi-ratelimit-headers.
func newDraft(begin time.Time, s Setting) Judge {
	b := fullBucket(begin, s.Rate, s.Burst)
	w := max(1, int(math.Ceil(s.Window.Seconds())))
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		status := 429
		if b.take(now, 1) {
			status = 200
		} else {
			h.Set("Retry-After", "1")
		}
		h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, int(s.Rate)*w, w))
		h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=1`, int(b.level+b.rate)))
		return 0, status, ""
	})
}

// newHostile is a bucket that says nonsense.
func newHostile(begin time.Time, s Setting) Judge {
	b := fullBucket(begin, s.Rate, s.Burst)
	i := 0
	lines := []string{
		"Retry-After: 999999999", "Retry-After: -1", "Retry-After: soon", "Retry-After: 1e18", "Retry-After: 9223372037",
		"RateLimit: \"a\";r=-1;t=1", "RateLimit: r=0;t=", "X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 99999999999999999999",
		"RateLimit-Policy: \"a\";q=0;w=0", "RateLimit-Policy: \"a\";q=999999999999999;w=1",
		"Retry-After: Thu, 01 Jan 1970 00:00:00 GMT", "Retry-After-Ms: NaN", "X-RateLimit-Reset-Requests: -6m",
	}
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		i++
		name, value, _ := strings.Cut(lines[i%len(lines)], ": ")
		h.Set(name, value)
		if b.take(now, 1) {
			return 0, 200, ""
		}
		return 0, 429, ""
	})
}
