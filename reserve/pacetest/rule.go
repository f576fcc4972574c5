package pacetest

import (
	"math"
	"slices"
	"time"
)

// A Rule says for which calls a [Server] has room. Servers count apart.
type Rule struct {
	start func() rule
	err   error
}

// A rule is used under one server's lock.
type rule interface {
	state(now time.Time, n int) State
	take(now, at time.Time, n int)
}

// A State is what a limit says when a call arrives.
type State struct {
	Name        string        // of the limit: "requests"
	Cost        int           // of the call
	Limit, Left int           // permits that there are at most, and that there are now
	Rate        float64       // permits per second; 0: there is none
	Next        time.Duration // until there is another permit
	Wait        time.Duration // until there is room for the call; 0: there is, or the server can't know
	Refused     bool
}

// Window has room for n permits in any stretch of per.
func Window(n int, per time.Duration) Rule {
	return Rule{func() rule { return &window{n: n, per: per} }, checkWindow("Window", n, per)}
}

// FixedWindow has room for n permits in each window of per, which begin at multiples of per since the zero time: with
// an hour, at each full hour of UTC. Up to 2n pass around such a moment.
func FixedWindow(n int, per time.Duration) Rule {
	return Rule{func() rule { return &window{n: n, per: per, fixed: true} }, checkWindow("FixedWindow", n, per)}
}

// Bucket has room for size permits at once, is full at the start, and gets permitsPerSecond back.
func Bucket(permitsPerSecond float64, size int) Rule {
	r := Rule{start: func() rule {
		return &bucket{rate: permitsPerSecond, size: float64(size), level: float64(size), last: time.Now()}
	}}
	if !(permitsPerSecond > 0) || math.IsInf(permitsPerSecond, 1) {
		r.err = valueError("Bucket", permitsPerSecond, "a positive number of permits per second")
	} else if size < 1 {
		r.err = valueError("Bucket", size, "a size of at least 1")
	}
	return r
}

// InFlight has room for n permits of unanswered calls, and its refusals say no time.
func InFlight(n int) Rule {
	r := Rule{start: func() rule { return &inFlight{n: n} }}
	if n < 1 {
		r.err = valueError("InFlight", n, "at least 1")
	}
	return r
}

// Unlimited has room for all calls: only the script refuses.
func Unlimited() Rule { return Rule{start: func() rule { return unlimited{} }} }

func checkWindow(name string, n int, per time.Duration) error {
	switch {
	case n < 1:
		return valueError(name, n, "at least 1 permit")
	case per <= 0:
		return valueError(name, per, "a positive time")
	}
	return nil
}

type window struct {
	n     int
	per   time.Duration
	fixed bool // a call counts as of the last multiple of per
	taken []taken
	sum   int // of taken
}

type taken struct {
	at time.Time
	n  int
}

func (w *window) state(now time.Time, n int) State {
	for len(w.taken) > 0 && now.Sub(w.taken[0].at) >= w.per {
		w.sum -= w.taken[0].n
		w.taken = w.taken[1:]
	}
	left := w.n - w.sum
	s := State{Limit: w.n, Left: max(0, left), Rate: float64(w.n) / w.per.Seconds(), Refused: n > left}
	s.Next = w.until(now, 1-min(0, left))
	if s.Refused && n <= w.n {
		s.Wait = w.until(now, n-left)
	}
	return s
}

func (w *window) until(now time.Time, n int) time.Duration {
	for _, t := range w.taken {
		if n -= t.n; n <= 0 {
			return t.at.Add(w.per).Sub(now)
		}
	}
	return 0
}

func (w *window) take(now, at time.Time, n int) {
	if w.fixed {
		at = at.Truncate(w.per)
	}
	if now.Sub(at) >= w.per {
		return
	}
	w.sum += n
	i := len(w.taken)
	for i > 0 && w.taken[i-1].at.After(at) {
		i--
	}
	if i > 0 && w.taken[i-1].at.Equal(at) {
		w.taken[i-1].n += n // of two calls at the same time, it does not matter which
		return
	}
	w.taken = slices.Insert(w.taken, i, taken{at, n})
}

type bucket struct {
	rate, size, level float64
	last              time.Time
}

func (b *bucket) state(now time.Time, n int) State {
	const rounding = 1e-9
	b.level = min(b.size, b.level+b.rate*now.Sub(b.last).Seconds())
	b.last = now
	left := math.Floor(b.level + rounding)
	s := State{Limit: int(b.size), Left: int(max(0, left)), Rate: b.rate, Refused: float64(n) > left}
	s.Next = b.until(min(left+1, b.size))
	if s.Refused && float64(n) <= b.size {
		s.Wait = b.until(float64(n))
	}
	return s
}

func (b *bucket) until(level float64) time.Duration {
	return time.Duration(math.Ceil(max(0, level-b.level) / b.rate * float64(time.Second)))
}

func (b *bucket) take(now, _ time.Time, n int) {
	b.state(now, 0)
	b.level = min(b.size, b.level-float64(n))
}

type inFlight struct{ n, busy int }

func (f *inFlight) state(_ time.Time, n int) State {
	return State{Limit: f.n, Left: max(0, f.n-f.busy), Refused: n > f.n-f.busy}
}

func (f *inFlight) take(_, _ time.Time, n int) { f.busy += n }

type unlimited struct{}

func (unlimited) state(time.Time, int) State { return State{} }
func (unlimited) take(_, _ time.Time, _ int) {}
