package conform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nextfree/pace/reserve"
)

// The envelope of a limiter knows no model. Leave out the permits that were given back. Then the requests granted in
// any stretch of time hold at most the capacity and the integral of the rate. Paid later, the last request's own
// permits are excepted: those behind it pay for them. Paid upfront, the first request of a stretch may be larger than
// the capacity.
//
// A store in time (a burst) holds seconds as long as SetRate alone changes the rate, and permits once Retime has been
// called: from then on SetRate keeps permits too. A program calls Retime first, or never: see [Envelope.inPermits].
//
// A promise that was made at a higher rate is kept. So where SetRate lowers the rate while
// something is owed, what the old rate gives in the time owed is allowed as well: see
// [Envelope.Explained].

// An Envelope is what a program did to a limiter, and what may be said of it.
type Envelope struct {
	Variant Variant
	History []string
	noted   atomic.Int64 // of these

	// Excess is by how many permits (of a store in time: seconds) a stretch held too much; Where says which.
	Excess float64
	Where  string
	// Explained is the largest excess that promises at a higher rate account for.
	Explained float64

	inPermits    bool // and not in seconds
	keepsPermits bool // Retime was called

	mu      sync.Mutex
	begin   time.Time
	rates   []change
	pauses  []stretch
	granted []*grant
}

type change struct {
	at      time.Duration
	rate    float64
	kept    float64       // permits that promises at the old rate may give beyond the new one's
	expires time.Duration // and when these are granted
}

type grant struct {
	r        *reserve.Reservation // nil: by TryAcquire
	permits  int
	at       time.Duration
	went     bool
	after    int // so many operations
	settled  bool
	reserved int
	interval float64 // seconds a permit, as SetRate keeps it and Retime scales it
	least    float64 // at any time
}

// Run does a program of random bytes, two an operation, to a limiter, in a bubble.
func (v Variant) Run(t *testing.T, program []byte) *Envelope {
	e := &Envelope{Variant: v}
	synctest.Test(t, func(t *testing.T) { newPlayer(t, e).play(program) })
	e.measure()
	return e
}

func (e *Envelope) note(format string, args ...any) {
	e.noted.Add(1)
	e.History = append(e.History, fmt.Sprintf("[%v] ", e.now())+fmt.Sprintf(format, args...))
}

// String is the program, and what it violated.
func (e *Envelope) String() string {
	return e.Variant.Name + "\n  " + strings.Join(e.History, "\n  ") + "\n" + e.Where
}

func (e *Envelope) now() time.Duration { return time.Since(e.begin) }

func (e *Envelope) rate() float64 { return e.rates[len(e.rates)-1].rate }

// supply is what flows into the limiter from the beginning until a time.
func (e *Envelope) supply(until time.Duration) (sum float64) {
	for i, c := range e.rates {
		from, to := c.at, until
		if i+1 < len(e.rates) {
			to = min(to, e.rates[i+1].at)
		}
		if to <= from {
			continue
		}
		rate := c.rate
		if !e.inPermits {
			rate = 1
		}
		sum += rate * (to - from - e.paused(from, to)).Seconds()
	}
	return sum
}

// paused is how long the limiter was paused in a stretch.
func (e *Envelope) paused(from, to time.Duration) (sum time.Duration) {
	end := from
	for _, p := range e.pauses { // they begin in order
		if begin, stop := max(p.from, end), min(p.to, to); begin < stop {
			sum += stop - begin
			end = stop
		}
	}
	return sum
}

// kept is what promises at a higher rate may give in a stretch.
func (e *Envelope) kept(from, to time.Duration) (sum float64) {
	for _, c := range e.rates {
		if c.at <= to && from <= c.expires+e.paused(c.at, to) {
			sum += c.kept
		}
	}
	return sum
}

// cost is what a request takes: permits, or of a store in time the least time that it ever stood for.
func (e *Envelope) cost(g *grant) float64 {
	if most := e.Variant.Most; most > 0 {
		return float64(min(g.permits, most))
	}
	if e.inPermits {
		return float64(g.permits)
	}
	return float64(g.permits) * g.least
}

// measure compares each two requests that were granted.
func (e *Envelope) measure() {
	var used []*grant
	for _, g := range e.granted {
		if g.went && g.permits > 0 {
			used = append(used, g)
		}
	}
	// In a store a request may overtake others that other processes were promised.
	slices.SortStableFunc(used, func(a, b *grant) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.after, b.after)) })
	supply := make([]float64, len(used))
	for i, g := range used {
		supply[i] = e.supply(g.at)
	}
	for i, first := range used {
		before := 0.0 // what the requests of the stretch cost before its last one
		highest := 0.0
		for k := i; k < len(used); k++ {
			last := used[k]
			highest = max(highest, 1/last.interval)
			sum, limit := e.stretch(before, first, last, supply[k]-supply[i], e.capacity(first.at, last.at, highest))
			e.exceeds(sum, limit, first, last)
			if before += e.cost(last); e.Variant.Per > 0 && last.at-first.at >= e.Variant.Per {
				break // it is longer than the window
			}
		}
	}
}

// capacity returns the most that the store could hold in a stretch, in which a promise at some rate was the highest.
func (e *Envelope) capacity(from, to time.Duration, highest float64) float64 {
	if n := e.Variant.AtOnce; n > 0 {
		slowest := 0.0
		for _, c := range e.rates {
			if c.at <= to {
				slowest = max(slowest, 1/c.rate)
			}
		}
		if e.inPermits {
			return n * max(1, highest*slowest)
		}
		return n * slowest
	}
	switch burst := e.Variant.Burst.Seconds(); {
	case burst == 0:
		return e.Variant.Capacity
	case !e.inPermits:
		return burst
	default:
		for i, c := range e.rates {
			if c.at <= to && (i+1 == len(e.rates) || e.rates[i+1].at >= from) {
				highest = max(highest, c.rate)
			}
		}
		return burst * highest
	}
}

// aheadDiffers is by how many permits what a request need not wait for differs with the rate at which it was sold: a cold
// permit of a warm-up whose store holds less than one costs half as much as that of a large one.
const aheadDiffers = 1.5

// stretch returns what goes from one request to another, and what may. Before is the cost of all but the last.
func (e *Envelope) stretch(before float64, first, last *grant, supply, capacity float64) (sum, limit float64) {
	v := e.Variant
	switch {
	case v.Per > 0:
		if last.at-first.at >= v.Per {
			return before, capacity
		}
		return before + e.cost(last), capacity
	case v.AtOnce > 0 && len(e.rates) > 1:
		return before + e.cost(last), max(capacity, e.cost(first)+aheadDiffers) + supply
	case v.Upfront:
		return before + e.cost(last), max(capacity, e.cost(first)) + supply
	}
	return before, capacity + supply // the requests behind the last one pay for it
}

// exceeds notes by how much a stretch holds too much, but for what promises at a higher rate account for.
func (e *Envelope) exceeds(sum, limit float64, first, last *grant) {
	excess := sum - limit
	if kept := e.kept(first.at, last.at); kept > 0 && e.inPermits && excess > 1e-5 {
		e.Explained = max(e.Explained, min(excess, kept))
		excess -= kept
	}
	if excess > max(1e-5, e.Excess) {
		e.Excess = excess
		e.Where = fmt.Sprintf("%.6f go from %v to %v, where %.6f are allowed", sum, first.at, last.at, limit)
	}
}
