// Package line is the line of requests in front of a limit that grants them in order, each whole: of windows and
// calendars.
package line

import (
	"math"
	"sort"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/smooth"
)

const (
	Never = saturate.Never // the largest time
	Asap  = math.MinInt64  // the latest time of a charge: it waits only for the requests before it
)

type State interface{ When() int64 }

// A Kind is the arithmetic of a limit.
type Kind[S State] interface {
	// Advance sets Now, and calls Due.
	Advance(now int64)
	// Present returns the state after the granted requests. After returns the state after a request behind prev, which
	// is granted at latest, or as soon as there is room.
	Present() S
	After(prev S, permits, latest int64) S
	// Grant makes the state after a request the present one. Refund takes back all permits of a granted request but
	// the first kept ones.
	Grant(number uint64, permits int64, after S)
	Refund(slot smooth.Slot, kept int)

	// Left returns how many permits the limit has left beside those granted; it may be negative.
	Left() int64
	Paused() int64
	Size() (capacity float64, largest int)
}

// A Line has the requests that wait: what all kinds have in common. Times are the kind's, those of the limiter and
// Offset, unless a comment says the limiter's.
type Line[S State] struct {
	Now     int64
	Offset  int64
	Stopped int64 // no request is granted before: the limiter's time
	Held    bool  // no request is granted now

	kind   Kind[S]
	wait   Queue[request[S]]
	known  int    // the states of the first so many are known
	kept   bool   // requests may have a latest time
	found  int    // what Find found last
	empty  int    // so many have no permits left
	newest uint64 // the number of the newest request
}

type request[S State] struct {
	number  uint64
	permits int64
	latest  int64 // a time that was promised before a change of the limit, Never, or Asap
	state   S     // after it
}

func Of[S State](kind Kind[S]) Line[S] { return Line[S]{kind: kind, Stopped: math.MinInt64} }

func (l *Line[S]) Due(now int64) {
	n := 0
	for all := l.wait.All(); n < len(all); n++ {
		if l.known == n {
			l.place()
		}
		r := &all[n]
		if r.permits == 0 {
			l.empty--
		} else if r.state.When() > now || l.Held && r.latest != Asap {
			break
		} else {
			l.kind.Grant(r.number, r.permits, r.state)
		}
	}
	l.known, l.found = l.known-n, max(0, l.found-n)
	l.wait.Drop(n)
}

func (l *Line[S]) place() {
	r := &l.wait.All()[l.known]
	r.state = l.frontier()
	if r.permits > 0 {
		r.state = l.kind.After(r.state, r.permits, r.latest)
	}
	l.known++
}

func (l *Line[S]) frontier() S {
	if l.known == 0 {
		return l.kind.Present()
	}
	return l.wait.All()[l.known-1].state
}

func (l *Line[S]) Last() S {
	for l.known < l.Len() {
		l.place()
	}
	return l.frontier()
}

func (l *Line[S]) Len() int { return l.wait.Len() }

// Permits returns how many permits wait; only charges: how many of them.
func (l *Line[S]) Permits(only bool) (sum int64) {
	for _, r := range l.wait.All() {
		if !only || r.latest == Asap {
			sum = saturate.Add(sum, r.permits)
		}
	}
	return sum
}

func (l *Line[S]) Find(f func(S) bool) S {
	all, i := l.wait.All()[:l.known], l.found
	if i > len(all) || i > 0 && f(all[i-1].state) {
		i = 0
	}
	for near := i + 2; i < near && !f(all[i].state); i++ { // the next request's is the same, or the next
	}
	if !f(all[i].state) {
		i += sort.Search(len(all)-i, func(k int) bool { return f(all[i+k].state) })
	}
	l.found = i
	return all[i].state
}

func (l *Line[S]) ToLimiter(t int64) int64 {
	if t == Never {
		return Never
	}
	return saturate.Add(t, -l.Offset)
}

func (l *Line[S]) Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool) {
	if _, largest := l.kind.Size(); permits > largest {
		return smooth.Slot{}, Never, false
	}
	l.kind.Advance(now)
	after := l.kind.After(l.Last(), int64(permits), Never)
	if ready = l.ToLimiter(after.When()); ready > latest {
		return smooth.Slot{}, ready, false
	}
	l.push(int64(permits), Never, after)
	return smooth.Slot{Number: l.newest, Permits: permits}, ready, true
}

func (l *Line[S]) Take(now int64, permits int) bool {
	l.kind.Advance(now)
	if _, largest := l.kind.Size(); permits > largest || l.Len() > 0 || l.Held {
		return false
	}
	after := l.kind.After(l.kind.Present(), int64(permits), Never)
	if after.When() > l.Now {
		return false
	}
	l.push(int64(permits), Never, after)
	return true
}

func (l *Line[S]) TakeUpTo(now int64, permits int) int {
	l.kind.Advance(now)
	permits = int(min(int64(permits), l.kind.Left()))
	if permits < 1 || !l.Take(now, permits) {
		return 0
	}
	return permits
}

func (l *Line[S]) Stored(now int64) float64 {
	if l.kind.Advance(now); l.Len() > 0 {
		return 0
	}
	return float64(max(0, l.kind.Left()))
}

func (l *Line[S]) Level(now int64) float64 {
	l.kind.Advance(now)
	return float64(l.kind.Left()) - float64(l.Permits(false))
}

func (l *Line[S]) Charge(now int64, permits int) {
	l.kind.Advance(now)
	l.push(int64(permits), Asap, l.kind.After(l.Last(), int64(permits), Asap))
}

func (l *Line[S]) push(permits, latest int64, after S) {
	l.newest++
	if l.Len() == 0 && after.When() <= l.Now && (!l.Held || latest == Asap) {
		l.kind.Grant(l.newest, permits, after)
		return
	}
	l.wait.Push(request[S]{number: l.newest, permits: permits, latest: latest, state: after})
	l.known = l.Len()
}

func (l *Line[S]) Return(now int64, slot smooth.Slot, kept int) {
	l.kind.Advance(now)
	if i, ok := l.find(slot.Number); ok {
		l.leave(i, int64(slot.Permits-kept))
	} else {
		l.kind.Refund(slot, kept)
		l.known = 0
	}
	l.kind.Advance(now) // at this time, whenever the next call is
}

func (l *Line[S]) leave(i int, back int64) {
	all := l.wait.All()
	all[i].permits -= back
	if l.known = min(l.known, i); all[i].permits > 0 {
		return
	}
	l.empty++
	n := len(all)
	for ; n > 0 && all[n-1].permits == 0; n-- {
		l.empty--
	}
	l.wait.Cut(n)
	if 2*l.empty > n {
		l.wait.Delete(func(r request[S]) bool { return r.permits == 0 })
		l.empty, l.known = 0, 0
	}
	l.known = min(l.known, l.Len())
}

func (l *Line[S]) find(number uint64) (i int, ok bool) {
	all := l.wait.All()
	i = sort.Search(len(all), func(i int) bool { return all[i].number >= number })
	return i, i < len(all) && all[i].number == number
}

func (l *Line[S]) Ready(now int64, number uint64) (ready int64, known bool) {
	l.kind.Advance(now)
	i, ok := l.find(number)
	if !ok {
		return 0, false
	}
	for l.known <= i {
		l.place()
	}
	return l.ToLimiter(l.wait.All()[i].state.When()), true
}

func (l *Line[S]) Waits(now int64, number uint64) bool {
	l.kind.Advance(now)
	_, ok := l.find(number)
	return ok
}

func (l *Line[S]) Idle(now int64) bool {
	l.kind.Advance(now)
	return l.Len() == 0 && now >= l.kind.Paused()
}
