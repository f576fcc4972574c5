package matrix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/nextfree/pace/reserve/outbound"
)

// A Situation is one that a program meets: a server that does more than limit, and a client in front of it.
type Situation struct {
	Name    string
	Kind    Kind
	Client  Client
	Setting Setting
}

// fleeting clients believe a server for as long as pace does by default, 5 min: those of [Clients] for 5 s.
func believing(name string, times float64, opts ...outbound.Option) Client {
	opts = append([]outbound.Option{outbound.WithMaxRetryAfter(5 * time.Minute)}, opts...)
	return Client{Name: name, New: paced(times, opts...)}
}

// The clients of situations.
var (
	Known        = believing("known", 1)
	KnownAdapted = believing("known, adaptive", 1, outbound.Adaptive())
	TooHigh      = believing("60 % too high", 1.6, outbound.Adaptive())
	Unknown      = believing("unknown", math.Inf(1), outbound.Adaptive())
	Untold       = believing("told nothing", math.Inf(1))
)

// lasting returns a setting of so many seconds of calls at the rate.
func lasting(rate, seconds float64) Setting {
	s := At(rate, 0)
	s.Calls = int(rate * seconds)
	return s
}

// Situations returns those of single programs, in the order of the research's list.
func Situations() (all []Situation) {
	clients := []Client{KnownAdapted, TooHigh, Unknown}
	add := func(name string, k Kind, s Setting, cs ...Client) {
		for _, c := range cs {
			all = append(all, Situation{name, k, c, s})
		}
	}
	for _, rate := range []float64{5, 50, 500} {
		seconds := map[float64]float64{5: 600, 50: 180, 500: 60}[rate]
		for _, p := range []float64{0.01, 0.03, 0.10} {
			for _, c := range []struct {
				name, after string
				status      int
				from, to    float64 // of the calls
			}{
				{"503", "", 503, 0, 1}, {"429, Retry-After", "1", 429, 0, 1},
				{"429, from the middle on", "", 429, 0.5, 1}, {"503, Retry-After, to the middle", "1", 503, 0, 0.5},
			} {
				k := Kind{Name: "chance", New: newChance(p, c.status, c.after, c.from, c.to), Ideal: bucketIdeal}
				add(fmt.Sprintf("N30 %v/s, %v %% get a %s by chance", rate, 100*p, c.name), k, lasting(rate, seconds), clients...)
			}
		}
	}
	for _, t := range []float64{1, 5, 10, 60, 300} {
		k := Kind{Name: "stop", New: newAway(60, t, 429, true), Ideal: awayIdeal(t)}
		add(fmt.Sprintf("stop of %v s", t), k, lasting(50, 180), KnownAdapted, TooHigh, Unknown)
	}
	for _, t := range []float64{10, 60, 600} {
		for _, rate := range []float64{5, 50, 500} {
			k := Kind{Name: "outage", New: newAway(30, t, 503, false), Ideal: awayIdeal(t)}
			add(fmt.Sprintf("outage of %v s at %v/s", t, rate), k, lasting(rate, 90), Known, KnownAdapted, TooHigh, Unknown)
		}
	}
	{
		s := lasting(10, 1200)
		k := Kind{Name: "quota", New: newAway(600, 3*3600, 429, true), Ideal: awayIdeal(3 * 3600)}
		add("N2 a daily quota, refused for 3 h", k, s, Known, KnownAdapted, TooHigh, Unknown)
	}
	for _, minute := range []float64{5, 20, 50, 100} {
		for _, c := range []struct {
			name string
			make func(time.Time, Setting) Judge
		}{{"sliding", newLog}, {"windows", newQuietWindows}, {"bucket", newSlowBucket}} {
			s := lasting(minute/60, 900)
			s.Window, s.Goroutines, s.Burst = time.Minute, 8, minute/4
			add(fmt.Sprintf("N5 %v a minute, %s", minute, c.name), Kind{Name: c.name, New: c.make, Ideal: evenIdeal}, s, Known, Unknown, Untold)
		}
	}
	cdn := lasting(10, 150)
	cdn.Goroutines, cdn.Window = 32, 10*time.Second
	for _, renewed := range []bool{false, true} {
		name := map[bool]string{false: "N6 a block of 60 s", true: "N6x a block that refused calls renew"}[renewed]
		k := Kind{Name: "cdn", New: newBlock(renewed), Ideal: evenIdeal}
		add(name, k, cdn, believing("5 % below", 0.95), Known, KnownAdapted, TooHigh, Unknown)
	}
	counted := lasting(10, 150)
	counted.Window = 10 * time.Second
	add("N7 refused calls count", Kind{Name: "N7", New: newCounting, Ideal: evenIdeal}, counted, Known, TooHigh, Unknown)
	ahead := lasting(10, 300)
	ahead.Window = 10 * time.Second
	k := Kind{Name: "N9n", New: newWindowsAhead(time.Hour), Ideal: evenIdeal, Undated: true}
	add("N9n clock an hour ahead, no Date", k, ahead, Known, TooHigh, Unknown)
	add("N9n right clock, no Date", Kind{Name: "N9n", New: newWindowsAhead(0), Ideal: evenIdeal, Undated: true}, ahead, Known, TooHigh, Unknown)
	for _, off := range []time.Duration{time.Hour, 0} {
		k := Kind{Name: "N9d", New: newDatesAhead(off), Ideal: evenIdeal, Undated: true}
		add(fmt.Sprintf("N9d Retry-After is a date, %v ahead, no Date", off), k, ahead, Unknown)
	}
	add("N14 the rate changes every 2 min", Kind{Name: "N14", New: newChanging, Ideal: changingIdeal}, lasting(10, 720), TooHigh, Unknown)
	slow := lasting(8./60, 1800)
	slow.Goroutines = 12
	add("N15 answers take a minute", Kind{Name: "N15", New: newPlacesFor(8, time.Minute), Ideal: evenIdeal}, slow,
		believing("8 in flight", math.Inf(1), outbound.WithMaxInFlight(8)), Unknown)
	add("N22 no limit", Kind{Name: "N22", New: newFree, Ideal: func(s Setting) time.Duration { return time.Minute }}, lasting(1000, 60), Unknown)
	add("N26 Retry-After: 0", Kind{Name: "N26", New: newBucket("0"), Ideal: bucketIdeal}, lasting(50, 60), TooHigh, Unknown)
	return all
}

// newChance is a token bucket whose calls are refused by chance besides: a share of them, from one
// part of its ideal time to another.
func newChance(share float64, status int, retryAfter string, from, to float64) func(time.Time, Setting) Judge {
	return func(begin time.Time, s Setting) Judge {
		random := rand.New(rand.NewPCG(s.Seed, 2))
		limit := newBucket(retryAfter)(begin, s)
		n, all := 0, float64(s.Calls)
		return judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
			if done := float64(n) / all; done >= from && done < to && random.Float64() < share {
				if retryAfter != "" {
					h.Set("Retry-After", retryAfter)
				}
				return 0, status, ""
			}
			takes, code, body := limit.Answer(now, r, h)
			if code == http.StatusOK {
				n++
			}
			return takes, code, body
		})
	}
}

// newAway is a token bucket with bare 429s that refuses everything for a time, and says for how long, or not.
func newAway(from, seconds float64, status int, says bool) func(time.Time, Setting) Judge {
	return func(begin time.Time, s Setting) Judge {
		limit := newBucket("")(begin, s)
		from := begin.Add(time.Duration(from * float64(time.Second)))
		to := from.Add(time.Duration(seconds * float64(time.Second)))
		return judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
			if now.Before(from) || !now.Before(to) {
				return limit.Answer(now, r, h)
			}
			if says {
				h.Set("Retry-After", strconv.Itoa(int(math.Ceil(to.Sub(now).Seconds()))))
			}
			return 0, status, ""
		})
	}
}

func awayIdeal(seconds float64) func(Setting) time.Duration {
	return func(s Setting) time.Duration { return bucketIdeal(s) + time.Duration(seconds*float64(time.Second)) }
}

// newQuietWindows counts in windows, and says only in a refusal when the next one begins.
func newQuietWindows(begin time.Time, s Setting) Judge {
	quota, left := int(math.Round(s.Rate*s.Window.Seconds())), 0
	var end time.Time
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		if !now.Before(end) {
			end, left = now.Truncate(s.Window).Add(s.Window), quota
		}
		if left > 0 {
			left--
			return 0, 200, ""
		}
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(end.Sub(now).Seconds()))))
		return 0, 429, ""
	})
}

// newSlowBucket says when its next token is there.
func newSlowBucket(begin time.Time, s Setting) Judge {
	b := fullBucket(begin, s.Rate, max(1, s.Burst))
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		if b.take(now, 1) {
			return 0, 200, ""
		}
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil((1-b.level)/b.rate))))
		return 0, 429, ""
	})
}

// newBlock is a CDN: more calls in a window than the rate allows, and all are refused for 60 s, or
// until 60 s after the last one.
func newBlock(renewed bool) func(time.Time, Setting) Judge {
	return func(begin time.Time, s Setting) Judge {
		quota := int(math.Round(s.Rate * s.Window.Seconds()))
		var log []time.Time
		var until time.Time
		return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
			for len(log) > 0 && now.Sub(log[0]) >= s.Window {
				log = log[1:]
			}
			blocked := now.Before(until)
			if !blocked {
				if log = append(log, now); len(log) <= quota {
					return 0, 200, ""
				}
			}
			if !blocked || renewed {
				until = now.Add(time.Minute)
			}
			return 0, 429, "<html><body>Too many requests</body></html>"
		})
	}
}

// newCounting is a sliding log in which refused calls count as well.
func newCounting(begin time.Time, s Setting) Judge {
	quota := int(s.Rate * s.Window.Seconds())
	var log []time.Time
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		for len(log) > 0 && now.Sub(log[0]) >= s.Window {
			log = log[1:]
		}
		log = append(log, now)
		if len(log) <= quota {
			return 0, 200, ""
		}
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil((s.Window - now.Sub(log[len(log)-1-quota])).Seconds()))))
		return 0, 429, ""
	})
}

// newWindowsAhead counts in windows, and sends X-RateLimit headers of a clock that is ahead.
func newWindowsAhead(ahead time.Duration) func(time.Time, Setting) Judge {
	return func(begin time.Time, s Setting) Judge {
		inner := newWindows(begin.Add(ahead), s)
		return judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
			return inner.Answer(now.Add(ahead), r, h)
		})
	}
}

// newDatesAhead counts in windows, and says only in a refusal when the next one begins: as a date by a clock that is
// ahead.
func newDatesAhead(ahead time.Duration) func(time.Time, Setting) Judge {
	return func(begin time.Time, s Setting) Judge {
		inner := newQuietWindows(begin, s)
		return judge(func(now time.Time, r *http.Request, h http.Header) (time.Duration, int, string) {
			takes, status, body := inner.Answer(now, r, h)
			if after, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
				h.Set("Retry-After", now.Add(ahead+time.Duration(after)*time.Second).UTC().Format(http.TimeFormat))
			}
			return takes, status, body
		})
	}
}

// newChanging is a bucket whose rate is s.Rate, half of it, and twice of it in turn, for 2 min each.
func newChanging(begin time.Time, s Setting) Judge {
	b := fullBucket(begin, s.Rate, s.Burst)
	return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
		b.fill(now)
		b.rate = s.Rate * []float64{1, 0.5, 1, 2}[int(now.Sub(begin)/(2*time.Minute))%4]
		if b.take(now, 1) {
			return 0, 200, ""
		}
		h.Set("Retry-After", "1")
		return 0, 429, ""
	})
}

func changingIdeal(s Setting) time.Duration {
	left := float64(s.Calls) - s.Burst
	for i := 0; ; i++ {
		here := s.Rate * []float64{1, 0.5, 1, 1.6}[i%4] // the client's ceiling is 1.6 times the rate
		if left <= here*120 {
			return time.Duration((float64(i)*120 + left/here) * float64(time.Second))
		}
		left -= here * 120
	}
}

// newPlacesFor has room for n calls at a time, each of which takes so long.
func newPlacesFor(n int, takes time.Duration) func(time.Time, Setting) Judge {
	return func(_ time.Time, s Setting) Judge {
		var busy []time.Time
		return judge(func(now time.Time, _ *http.Request, h http.Header) (time.Duration, int, string) {
			free := busy[:0]
			for _, end := range busy {
				if end.After(now) {
					free = append(free, end)
				}
			}
			if busy = free; len(busy) >= n {
				return 0, 429, ""
			}
			busy = append(busy, now.Add(takes))
			return takes, 200, ""
		})
	}
}

// newFree limits nothing.
func newFree(time.Time, Setting) Judge {
	return judge(func(time.Time, *http.Request, http.Header) (time.Duration, int, string) { return 0, 200, "" })
}
