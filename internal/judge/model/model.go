// Package model is a slow, obvious limiter to judge the real limiter by, written from one sentence: at every moment it
// is what it would be had it known from the start what it knows now, but no granted request is recalled.
//
// It lists all that happened: changes of the rate, and granted requests, each with its time and its cost as known now.
// To answer, it fills a bucket from that list again: see level. Waiting requests stand in a line, and the head goes as
// soon as the bucket allows it. A copy of the model runs to find a promise.
//
// The bucket holds time: a permit is its interval when it was sold.
package model

import (
	"math"
	"slices"
)

// A Config is a kind of limiter.
type Config struct {
	Rate     float64                    // permits per second at the start
	Capacity func(rate float64) float64 // permits that can be saved up
	Stored   float64                    // permits at the start, at most as many as fit
	Upfront  bool                       // a request pays for itself, not for the one before it
	Warm     *WarmUp                    // of a warming-up limiter, in place of Capacity

	KeepsPermits bool // SetRate is Retime, as where the capacity is a number of permits
}

// Burst is the capacity of a limiter that saves up that many seconds.
func Burst(seconds float64) func(rate float64) float64 {
	return func(rate float64) float64 { return rate * seconds }
}

func Fixed(permits float64) func(rate float64) float64 {
	return func(float64) float64 { return permits }
}

// A Limiter is a model. Times and costs are nanoseconds, real times since it was made. The limiter's own time has no
// pauses.
type Limiter struct {
	// Closest is the smallest margin of any decision, exact ties aside unless something came back.
	Closest float64

	config Config
	rate   float64   // now
	start  float64   // what the bucket held at the start
	first  float64   // what it could hold then
	past   []event   // what has happened, in order
	line   []request // the waiting ones, in order
	now    float64   // the limiter's time
	real   float64   // real time
	until  float64   // the end of the latest pause, real
	lastID int       // from 1 on; charges have negative ones
	since  float64   // when the line, which was empty, began: the limiter's time

	charges int
	retimed bool

	// Of a warming-up limiter:
	stored float64 // permits
	rooms  []room
}

// A room is the empty part of the store at a moment.
type room struct {
	sold int // requests and charges until then
	part float64
}

// A request asked for permits, or is a charge: a settlement beyond its reservation.
type request struct {
	id       int
	reserved int
	permits  int // what is known now that it comes to
	price    func(permits int) float64
	settled  bool
	refunded bool    // after it was granted
	ahead    float64 // what it need not wait for, paid upfront

	curve  *curve  // of a warming-up limiter: at the time of the sale,
	stored float64 // what was stored then,
	sold   int     // and how many were sold before
}

func (r request) cost() float64 { return r.price(r.permits) }

// An event is a request that went, or a change of the rate.
type event struct {
	at   float64 // the limiter's time
	real float64
	went bool
	request
	since float64 // when the line began that it stood in: the limiter's time

	// A change of the rate:
	scale    float64      // a nanosecond becomes so many;
	capacity float64      // this is what the bucket can hold from now on,
	waited   map[int]bool // and these requests waited,
	head     int          // this one first,
	need     float64      // which cost so much
}

func New(c Config) *Limiter {
	l := &Limiter{Closest: math.Inf(1), config: c, rate: c.Rate}
	if c.Warm != nil {
		l.stored = min(c.Stored, c.Warm.curve(c.Rate).capacity)
		return l
	}
	l.first = l.capacity(c.Rate)
	l.start = min(c.Stored*interval(c.Rate), l.first)
	return l
}

func interval(rate float64) float64 { return 1e9 / rate }

// capacity is what the bucket can hold at a rate, without a warming-up store.
func (l *Limiter) capacity(rate float64) float64 {
	if l.config.Warm != nil {
		return 0
	}
	return l.config.Capacity(rate) * interval(rate)
}

// ahead is what a request that pays upfront need not wait for, at a rate: a permit of the coldest limiter.
func (l *Limiter) ahead(rate float64) float64 {
	if l.config.Warm == nil || !l.config.Upfront {
		return 0
	}
	c := l.config.Warm.curve(rate)
	return c.cost(1, c.capacity)
}

func (l *Limiter) Clone() *Limiter {
	c := *l
	c.past, c.line, c.rooms = slices.Clone(l.past), slices.Clone(l.line), slices.Clone(l.rooms)
	return &c
}

func (l *Limiter) Paused() bool { return l.real < l.until }

func (l *Limiter) Advance(d float64) {
	end := l.real + d
	if l.Paused() {
		l.real = min(end, l.until)
		if margin := l.letGo(); l.real == end {
			l.decide(margin)
		}
	}
	for l.real < end {
		wait := math.Inf(1)
		if len(l.line) > 0 {
			wait = l.wait()
			l.decide(l.real + wait - end)
		}
		if l.real+wait > end {
			l.idle(end - l.real)
			l.now += end - l.real
			l.real = end
			return
		}
		l.now += wait
		l.real += wait
		l.leave()
		l.letGo()
	}
}

// letGo grants the requests that may go now, and returns its margin.
func (l *Limiter) letGo() (margin float64) {
	margin = math.Inf(1)
	for len(l.line) > 0 && !l.Paused() {
		wait := l.wait()
		if wait != 0 {
			margin = min(margin, math.Abs(wait))
		}
		if wait > 0 {
			break
		}
		l.leave()
	}
	return margin
}

// wait is the wait of the head of the line; 0 or less if it may go.
func (l *Limiter) wait() float64 {
	level, costs := l.replay()
	if l.config.Upfront {
		return costs[l.line[0].id] - l.line[0].ahead - level
	}
	return -level
}

func (l *Limiter) leave() {
	l.past = append(l.past, event{at: l.now, real: l.real, went: true, request: l.line[0], since: l.since})
	l.line = slices.Delete(l.line, 0, 1)
}

func (l *Limiter) decide(margin float64) {
	if margin != 0 {
		l.Closest = min(l.Closest, math.Abs(margin))
	}
}

// Reserve asks for permits. A request that would wait longer than maxWait is refused, and never was.
func (l *Limiter) Reserve(permits int, maxWait float64) (id int, wait float64, ok bool) {
	r := l.sell(permits)
	r.id = l.lastID + 1
	c := l.Clone()
	c.join(r)
	wait = c.promises()[r.id] - l.real
	l.decide(wait - maxWait)
	if wait > maxWait {
		return 0, wait, false
	}
	l.lastID++
	l.join(r)
	l.decide(l.letGo())
	return r.id, wait, true
}

func (l *Limiter) join(r request) {
	if l.config.Warm != nil {
		l.stored -= took(r.permits, r.stored)
	}
	if len(l.line) == 0 {
		l.since = l.now
	}
	l.line = append(l.line, r)
}

func (l *Limiter) sell(permits int) request {
	each := interval(l.rate)
	r := request{reserved: permits, permits: permits}
	r.price = func(permits int) float64 { return float64(permits) * each }
	r.ahead = l.ahead(l.rate)
	if l.config.Warm != nil {
		l.config.Warm.sell(&r, l.rate, l.stored)
		r.sold = l.lastID + l.charges
	}
	return r
}

func (l *Limiter) TryAcquire(permits int) (id int, ok bool) {
	id, _, ok = l.Reserve(permits, 0)
	return id, ok
}

// Settle says a request's cost, once. Missing permits are charged at the end of the line.
func (l *Limiter) Settle(id, actual int) {
	r := l.find(id)
	if r == nil || r.settled {
		return
	}
	r.settled = true
	if actual > r.reserved {
		charge := l.sell(actual - r.reserved)
		l.charges++
		charge.id = -l.charges
		if l.join(charge); len(l.line) == 1 {
			l.leave() // nobody waits: it is owed at once
		}
	} else {
		r.refunded = !slices.ContainsFunc(l.line, func(waits request) bool { return waits.id == id })
		l.giveBack(r, max(0, actual))
	}
	l.line = slices.DeleteFunc(l.line, func(r request) bool { return r.permits == 0 })
	if len(l.line) > 0 && !l.Paused() && l.wait() == 0 {
		l.Closest = 0 // what comes back is just enough
	}
	l.decide(l.letGo())
}

func (l *Limiter) giveBack(r *request, actual int) {
	if l.config.Warm != nil {
		l.restore(*r, actual)
	}
	r.permits = actual
}

func (l *Limiter) find(id int) *request {
	for i := range l.past {
		if l.past[i].went && l.past[i].id == id {
			return &l.past[i].request
		}
	}
	for i := range l.line {
		if l.line[i].id == id {
			return &l.line[i]
		}
	}
	return nil
}

func (l *Limiter) PauseUntil(t float64) { l.until = max(l.until, t) }

func (l *Limiter) Resume() {
	l.until = min(l.until, l.real)
	l.decide(l.letGo())
}

// SetRate keeps all times. With a capacity in permits, or after a Retime, it is Retime.
func (l *Limiter) SetRate(rate float64) {
	if l.config.KeepsPermits || l.retimed {
		l.changeRate(rate, l.rate/rate)
	} else {
		l.changeRate(rate, 1)
	}
}

// Retime keeps all permits: stored, as far as they fit, owed, and waited for.
func (l *Limiter) Retime(rate float64) {
	if rate != l.rate {
		l.retimed = true
	}
	l.changeRate(rate, l.rate/rate)
}

func (l *Limiter) changeRate(rate, scale float64) {
	if l.config.Warm != nil {
		l.restock(rate)
	}
	e := event{at: l.now, since: l.since, scale: scale, capacity: l.capacity(rate), waited: map[int]bool{}}
	_, costs := l.replay()
	for i, r := range l.line {
		if e.waited[r.id] = true; i == 0 {
			e.head, e.need = r.id, costs[r.id]-r.ahead
		}
		l.line[i].ahead *= scale
	}
	l.rate = rate
	l.past = append(l.past, e)
	l.decide(l.level())
	l.decide(l.letGo())
}

func (l *Limiter) Waiting() (ids []int) {
	for _, r := range l.line {
		if r.id > 0 {
			ids = append(ids, r.id)
		}
	}
	return ids
}

func (l *Limiter) Quiet() bool { return len(l.line) == 0 }

// Times returns when each request was granted, or will be: real times.
func (l *Limiter) Times() map[int]float64 { return l.Clone().promises() }

func (l *Limiter) promises() map[int]float64 {
	l.real = max(l.real, l.until)
	for l.letGo(); len(l.line) > 0; l.letGo() {
		wait := l.wait()
		l.now += wait
		l.real += wait
		l.leave()
	}
	times := map[int]float64{}
	for _, e := range l.past {
		if e.went && e.id > 0 {
			times[e.id] = e.real
		}
	}
	return times
}

func (l *Limiter) NextFree() float64 {
	_, wait, _ := l.Clone().Reserve(1, math.Inf(1))
	return l.real + wait
}

func (l *Limiter) Stored() float64 {
	if l.config.Warm != nil {
		return l.stored
	}
	return max(0, l.level()) / interval(l.rate)
}

func (l *Limiter) Interval() float64 { return interval(l.rate) }

func (l *Limiter) Rate() float64 { return l.rate }
