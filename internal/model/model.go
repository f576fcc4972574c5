// Package model is a limiter for tests to compare the real one with: slow, obvious, and
// written from the rules alone.
//
// It keeps a list of everything that ever happened and, asked anything, walks it from
// the start. What was reserved owns a stretch of limiter time; a stretch that nobody owns
// is for sale while it is ahead of now and before the end of the queue, and earns
// permits when it has passed. Giving back a reservation that was not used takes it off the
// list, so that it has never been, or takes its stretch away, or notes that so many
// permits came back late: see giveBack. Nothing else is remembered.
package model

import (
	"fmt"
	"math"
	"sort"
)

// hair is the length, in nanoseconds, under which two times are the same.
const hair = 1e-3

// Limiter is one model. Real times are nanoseconds since it was made; limiter times are
// the same without the pauses.
type Limiter struct {
	// Unsure is how far, in nanoseconds, a decision may be from the edge for the model to
	// accept either outcome: the real limiter counts in whole nanoseconds.
	Unsure float64

	curve   func(rate float64) Curve
	start   float64 // stored at the start
	rate    float64 // at the start
	upfront bool
	events  []*event
	now     float64 // real
	pauses  []pause
}

type pause struct {
	at     float64 // limiter time
	until  float64 // real
	length float64
	after  int // events that had happened when it began
}

// event is one line of the list: a grant, permits that came back, or a new rate.
type event struct {
	at   float64 // limiter time
	kind kind
	id   int

	// Of a grant.
	permits  int
	from, to float64 // its stretch
	took     float64 // stored permits
	stored   float64 // how many there were
	curve    Curve   // its price list
	gone     bool    // its stretch was given back
	buried   bool    // a later one was taken back, and not as the newest
	closed   bool    // nothing more can be given back
	ready    float64 // limiter time

	// Of permits that came back.
	of       *event
	amount   float64
	cutOff   bool // the queue is shorter now, so they go to the store at once,
	wasAside bool // and they had been aside

	// Of a new rate.
	rate float64
}

type kind int

const (
	grant kind = iota
	comeback
	newRate
)

// New returns a model.
func New(curve func(rate float64) Curve, rate, stored float64, upfront bool) *Limiter {
	return &Limiter{curve: curve, rate: rate, start: math.Min(stored, curve(rate).Capacity), upfront: upfront}
}

// Advance lets real time pass.
func (l *Limiter) Advance(nanos float64) { l.now += nanos }

// Now is the real time.
func (l *Limiter) Now() float64 { return l.now }

// Paused says whether the limiter's clock stands still.
func (l *Limiter) Paused() bool {
	return len(l.pauses) > 0 && l.now < l.pauses[len(l.pauses)-1].until
}

// clock is the limiter time.
func (l *Limiter) clock() float64 {
	if l.Paused() {
		return l.pauses[len(l.pauses)-1].at
	}
	t := l.now
	for _, p := range l.pauses {
		t -= p.length
	}
	return t
}

// PauseUntil stops the limiter's clock.
func (l *Limiter) PauseUntil(t float64) {
	switch {
	case t <= l.now:
	case !l.Paused():
		l.pauses = append(l.pauses, pause{at: l.clock(), until: t, length: t - l.now, after: len(l.events)})
	default:
		p := &l.pauses[len(l.pauses)-1]
		if t > p.until {
			p.length += t - p.until
			p.until = t
		}
	}
}

// real is when the limiter time of a grant comes. The pauses that it did not see
// begin all move it; of the others, those that began before that time.
func (l *Limiter) real(ready float64, index int) float64 {
	t := ready
	for _, p := range l.pauses {
		if index >= p.after || ready > p.at+hair {
			t += p.length
		}
	}
	return t
}

// At is when the permits of a grant may be used: real time.
func (l *Limiter) At(id int) float64 {
	for i, e := range l.events {
		if e.kind == grant && e.id == id {
			return l.real(e.ready, i)
		}
	}
	return math.NaN()
}

// Stored is how many permits are stored now. What is aside counts as well if that was
// seen, and it is too near to tell whether the queue is over.
func (l *Limiter) Stored(seen float64) float64 {
	s := l.walk(nil)
	if math.Abs(l.clock()-l.end()) <= l.Unsure && math.Abs(seen-s.stored) > s.aside/2 {
		return s.stored + s.aside
	}
	return s.stored
}

// Aside is how many permits wait for the end of the queue.
func (l *Limiter) Aside() float64 { return l.walk(nil).aside }

// Capacity is how many permits can be stored.
func (l *Limiter) Capacity() float64 { return l.walk(nil).curve.Capacity }

// Interval is what a fresh permit costs now, in nanoseconds.
func (l *Limiter) Interval() float64 { return l.walk(nil).curve.Interval }

// end is that of the queue: limiter time.
func (l *Limiter) end() float64 {
	end := 0.0
	for _, e := range l.events {
		if e.kind == grant && !e.gone {
			end = math.Max(end, e.to)
		}
	}
	return end
}

// forSale lists the stretches ahead that nobody owns, in order; the last has no end.
func (l *Limiter) forSale() [][2]float64 {
	var owned []*event
	for _, e := range l.events {
		if e.kind == grant && !e.gone {
			owned = append(owned, e)
		}
	}
	sort.SliceStable(owned, func(i, j int) bool { return owned[i].from < owned[j].from })
	var free [][2]float64
	t := l.clock()
	for _, e := range owned {
		if e.from > t+hair {
			free = append(free, [2]float64{t, e.from})
		}
		t = math.Max(t, e.to)
	}
	return append(free, [2]float64{t, math.Inf(1)})
}

// ForSale is how many stretches before the end of the queue are for sale.
func (l *Limiter) ForSale() int { return len(l.forSale()) - 1 }

// place is where a request can go.
type place struct {
	grant *event
	at    float64 // real
	spare float64 // how much longer than the cost the stretch is
}

// places are all that a request could get, the first that fits being the right one.
func (l *Limiter) places(n int) []place {
	s := l.walk(nil)
	took := math.Min(float64(n), s.stored)
	cost := s.curve.Cost(s.stored, took) + (float64(n)-took)*s.curve.Interval
	var all []place
	for _, free := range l.forSale() {
		g := &event{
			at: l.clock(), permits: n, from: free[0], to: free[0] + cost,
			took: took, stored: s.stored, curve: s.curve, ready: free[0],
		}
		if l.upfront {
			g.ready = g.to
		}
		all = append(all, place{grant: g, at: l.real(g.ready, len(l.events)), spare: free[1] - free[0] - cost})
	}
	return all
}

// find is the place for n permits. Where the edge is too near to tell, it is that
// which the real limiter chose, given as the wait that it said.
func (l *Limiter) find(n int, wait float64) place {
	all := l.places(n)
	for _, p := range all {
		sure := p.spare > l.Unsure
		maybe := p.spare > -l.Unsure
		same := math.Abs(math.Max(0, p.at-l.now)-wait) <= l.Unsure+1
		if sure || maybe && same || l.Unsure == 0 && p.spare >= 0 {
			return p
		}
	}
	return all[len(all)-1]
}

// NextFree is when a request for one permit would be granted: real time, not
// before now. Seen is what the real limiter says, for when it is too near to tell.
func (l *Limiter) NextFree(seen float64) float64 {
	return math.Max(l.now, l.find(1, seen-l.now).at)
}

// Reserve grants n permits if they may be used within maxWait, and returns the wait.
// The wait and the decision that were seen are used only where it is too near to tell.
func (l *Limiter) Reserve(id, n int, maxWait, seenWait float64, seenOk bool) (wait float64, ok bool) {
	p := l.find(n, seenWait)
	wait = math.Max(0, p.at-l.now)
	ok = wait <= math.Max(0, maxWait)
	if l.Unsure > 0 && math.Abs(wait-math.Max(0, maxWait)) <= l.Unsure {
		ok = seenOk
	}
	if ok {
		p.grant.id = id
		l.events = append(l.events, p.grant)
	}
	return wait, ok
}

// SetRate changes the rate.
func (l *Limiter) SetRate(rate float64) {
	l.events = append(l.events, &event{at: l.clock(), kind: newRate, rate: rate})
}

func (l *Limiter) get(id int) (int, *event) {
	for i, e := range l.events {
		if e.kind == grant && e.id == id && !e.gone {
			return i, e
		}
	}
	return -1, nil
}

// String is the whole list: two models that have the same one are the same.
func (l *Limiter) String() string {
	text := fmt.Sprint(l.now, l.pauses)
	for _, e := range l.events {
		text += fmt.Sprintln(e.at, e.kind, e.id, e.from, e.to, e.took, e.gone, e.buried, e.amount, e.cutOff, e.wasAside, e.rate)
	}
	return text
}

// Clone returns a copy.
func (l *Limiter) Clone() *Limiter {
	c := *l
	c.pauses = append([]pause(nil), l.pauses...)
	c.events = nil
	copies := map[*event]*event{}
	for _, e := range l.events {
		twin := *e
		copies[e] = &twin
		c.events = append(c.events, &twin)
	}
	for _, e := range c.events {
		if e.of != nil {
			e.of = copies[e.of]
		}
	}
	return &c
}

func (l *Limiter) charge(id, n int) {
	all := l.places(n)
	for all[0].spare < 0 {
		all = all[1:]
	}
	g := all[0].grant
	g.id, g.closed = id, true
	l.events = append(l.events, g)
}
