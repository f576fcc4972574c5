// Package fifo is one line in front of several limits: a call has all of its permits or none, and those of
// all limits are charged at the moment it goes.
//
// A limiter that sells a permit before the call goes forgets it before the server does. So of those that
// wait, only the first reserves: at the limit for which it must wait longest; and when that time comes, at the
// others. If one of those has no room by then, the first waits for that one in the same way. Shortly before it goes the next has
// its turn, so that nothing is lost if the program is slow to wake.
//
// There is a line for each set of keys, so that no key slows another. Lines that share a limit meet there
// with their first ones, in its own order.
package fifo

import (
	"container/list"
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/reserve"
)

// A Limit is what a call asks of one limit.
type Limit struct {
	By      reserve.Reserver
	Permits int // at least 1
	// Recount, if it is not nil, says how many it is when the call's turn comes: what is less than 1 counts as 1.
	Recount func() int
	// Gate is asked as well, for one permit, if By can't be paused itself; nil: it can.
	Gate reserve.Reserver
	// Open blocks until a call may ask By, if it is not nil: while nothing is known of the limit, one
	// call goes alone, and the others wait for what it finds.
	Open func(ctx context.Context) error

	// Held is the reservation that Acquire makes.
	Held reserve.Reservation
}

// local reports whether the limiter is one of this process: to reserve and to cancel costs it little.
func (l *Limit) local() bool {
	_, ok := l.By.(interface{ Stored() float64 })
	return ok
}

// Lines are the lines of all sets of keys. The zero value is ready to use.
type Lines struct {
	mu    sync.Mutex
	lines map[any]*line
}

// A line is that of one set of keys.
type line struct {
	places list.List // of *place, in the order of their calls; those that had their turn come first
	turn   *place    // whose turn it is to reserve
	ahead  []int     // permits that those in line ask of each limit
	few    [few]int  // of ahead
}

// few limits are what most calls have: for so many nothing is allocated apart.
const few = 3

// A place is that of a call.
type place struct {
	call   uint64
	limits []Limit
	turn   chan struct{} // closed when it is the first one's; nil: it was at once
	first  bool
	holds  set // of limits, by number, where it has a reservation
	at     *list.Element
	few    [few]int // what those before it ask

	fewAsks [few]*Limit
}

// counts returns room for a number for each of n limits.
func counts(few *[few]int, n int) []int {
	if n <= len(few) {
		return few[:n]
	}
	return make([]int, n)
}

// A set is one of small numbers.
type set struct{ bits atomic.Uint64 }

func (s *set) is(i int) bool { return s.bits.Load()&(1<<i) != 0 }

func (s *set) set(i int, is bool) {
	if is {
		s.bits.Or(1 << i)
	} else {
		s.bits.And(^(1 << i))
	}
}

// Acquire waits until a call may go, and then holds a reservation of each limit. Calls are numbered in their
// order: one that asks again goes before those that came after it, but for the first, whose turn it is already.
//
// If the wait would be longer than maxWait or the context's deadline allow, Acquire returns a
// *reserve.WaitError at once and takes nothing. That is exact but for what other lines that share a limit
// will ask.
func (l *Lines) Acquire(ctx context.Context, set any, call uint64, limits []Limit, maxWait time.Duration) error {
	if len(limits) == 0 {
		return nil
	}
	for i := range limits {
		limits[i].Held = reserve.Reservation{} // of an earlier attempt
	}
	if len(limits) == 1 && !limits[0].local() {
		return direct(ctx, &limits[0], maxWait)
	}
	p := &place{call: call, limits: limits}
	ahead := l.enter(set, p)
	defer l.leave(set, p)
	if p.turn != nil {
		if err := outlook(ctx, limits, ahead, maxWait); err != nil {
			return err
		}
		select {
		case <-p.turn:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		maxWait = reserve.Forever // it has been told that it can wait
	}
	l.recount(set, p)
	return p.take(ctx, maxWait, l, set)
}

// recount has a call whose turn it is ask for what it costs by what is known now.
func (l *Lines) recount(set any, p *place) {
	for i := range p.limits {
		m := &p.limits[i]
		if m.Recount == nil {
			continue
		}
		n := max(1, m.Recount())
		l.mu.Lock()
		l.lines[set].ahead[i] += n - m.Permits
		m.Permits = n
		l.mu.Unlock()
	}
}

// enter puts a place in its line, and returns what those before it ask of each limit.
func (l *Lines) enter(set any, p *place) (ahead []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[set]
	if q == nil {
		if l.lines == nil {
			l.lines = map[any]*line{}
		}
		q = new(line)
		q.ahead = counts(&q.few, len(p.limits))
		l.lines[set] = q
	}
	ahead = q.before(p.call, counts(&p.few, len(p.limits)))
	before := q.last(p.call)
	if before == nil {
		p.at = q.places.PushFront(p)
	} else {
		p.at = q.places.InsertAfter(p, before)
	}
	if q.turn == nil {
		q.next()
	}
	if !p.first {
		p.turn = make(chan struct{})
	}
	for i := range p.limits {
		q.ahead[i] = add(q.ahead[i], p.limits[i].Permits)
	}
	return ahead
}

// last returns the place behind which a call comes: nil if there is none.
func (q *line) last(call uint64) *list.Element {
	e := q.places.Back()
	for e != nil && e.Value.(*place).call > call && !e.Value.(*place).first {
		e = e.Prev()
	}
	return e
}

// before returns what those before a call ask of each limit, and do not have yet.
func (q *line) before(call uint64, ahead []int) []int {
	copy(ahead, q.ahead)
	last := q.last(call)
	for e := q.places.Back(); e != nil && e != last; e = e.Prev() {
		limits := e.Value.(*place).limits
		for i := range limits {
			ahead[i] -= limits[i].Permits
		}
	}
	for e := q.places.Front(); e != nil && e.Value.(*place).first; e = e.Next() {
		p := e.Value.(*place)
		for i := range p.limits {
			if p.holds.is(i) { // it is in the limiter's own line
				ahead[i] -= p.limits[i].Permits
			}
		}
	}
	return ahead
}

// next gives the turn to the first that has not had it.
func (q *line) next() {
	q.turn = nil
	for e := q.places.Front(); e != nil; e = e.Next() {
		if p := e.Value.(*place); !p.first {
			p.first, q.turn = true, p
			if p.turn != nil {
				close(p.turn)
			}
			return
		}
	}
}

// pass gives the turn of a place to the next, before it goes.
func (l *Lines) pass(set any, p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.lines[set]; q != nil && q.turn == p { // the line may be over, when a timer calls
		q.next()
	}
}

// leave takes a place out of its line, and gives the turn to the next.
func (l *Lines) leave(set any, p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[set]
	q.places.Remove(p.at)
	for i := range p.limits {
		q.ahead[i] -= p.limits[i].Permits
	}
	switch {
	case q.places.Len() == 0:
		delete(l.lines, set)
	case q.turn == p:
		q.next()
	}
}

// outlook returns an error if a call would have to wait for too long behind those before it. It finds out
// by asking for all of it, and giving it back at once.
func outlook(ctx context.Context, limits []Limit, ahead []int, maxWait time.Duration) error {
	for i := range limits {
		if !limits[i].local() {
			continue
		}
		var before reserve.Reservation
		var err error
		rest, later := limits[i].split(ahead[i])
		if rest > 0 {
			before, err = limits[i].By.ReserveWithin(context.Background(), rest, reserve.Forever)
			if err != nil {
				continue // nobody may wait for so long
			}
		}
		err = limits[i].outlook(ctx, maxWait, later)
		before.Cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// split returns what is left of permits that others ask before, without the windows that they fill, and how long those take.
func (l *Limit) split(permits int) (rest int, windows time.Duration) {
	by, ok := l.By.(*reserve.Limiter)
	if !ok {
		return permits, 0
	}
	w := engine.Outlook(by)
	if size := int(min(w.Capacity, math.MaxInt32)); w.Window && size > 0 && w.Rate > 0 {
		d := float64(permits/size) * float64(size) / w.Rate * float64(time.Second)
		return permits % size, time.Duration(min(d, float64(math.MaxInt64/2)))
	}
	return permits, 0
}

// outlook returns an error if a call would have to wait for too long, so much later than the limiter knows.
func (l *Limit) outlook(ctx context.Context, maxWait, later time.Duration) error {
	if later > maxWait {
		own, err := l.reserve(context.Background(), reserve.Forever)
		later += own.Delay()
		own.Cancel()
		if err != nil {
			return err
		}
		return &reserve.WaitError{Wait: later, MaxWait: maxWait}
	}
	if later > 0 {
		ctx = earlier{ctx, later}
		if maxWait < reserve.Forever {
			maxWait -= later
		}
	}
	own, err := l.reserve(ctx, maxWait)
	own.Cancel()
	var wait *reserve.WaitError
	if later > 0 && errors.As(err, &wait) {
		return &reserve.WaitError{Wait: wait.Wait + later, MaxWait: wait.MaxWait + later, Cause: wait.Cause}
	}
	return err
}

// earlier is a context whose deadline is so much earlier.
type earlier struct {
	context.Context
	by time.Duration
}

func (e earlier) Deadline() (time.Time, bool) {
	t, ok := e.Context.Deadline()
	return t.Add(-e.by), ok
}

// add returns a + b, saturated.
func add(a, b int) int {
	if sum := a + b; sum >= a {
		return sum
	}
	return int(^uint(0) >> 1)
}

// Outlook returns the error that Acquire would return at once.
func (l *Lines) Outlook(ctx context.Context, set any, call uint64, limits []Limit, maxWait time.Duration) error {
	ahead := make([]int, len(limits))
	l.mu.Lock()
	if q := l.lines[set]; q != nil {
		ahead = q.before(call, ahead)
	}
	l.mu.Unlock()
	for i := range limits {
		if g := limits[i].Gate; g != nil {
			r, err := g.ReserveWithin(ctx, 1, maxWait)
			r.Cancel()
			if err != nil {
				return err
			}
		}
	}
	return outlook(ctx, limits, ahead, maxWait)
}
