package fifo

import (
	"container/list"
	"slices"
	"sync/atomic"

	"github.com/nextfree/pace/internal/saturate"
)

// A line holds the calls of one set of keys.
type line struct {
	calls  list.List // of *waiter, by number; calls whose turn has begun come first
	turn   *waiter   // whose turn it is to reserve
	queued []int64   // permits that all calls of the line ask of each limit
	few    [few]int64
}

// A waiter is a call in its line.
type waiter struct {
	call     uint64
	limits   []Limit
	ready    chan struct{} // closed when its turn begins; nil: that was at once
	first    bool          // its turn has begun
	reserved bits          // limits, by number, where it has a reservation: it is in their own queue
	at       *list.Element

	fewAsks [few]*Limit
}

// few is how many limits a call may have without an allocation for them.
const few = 3

// bits is a set of small numbers.
type bits struct{ of atomic.Uint64 }

func (b *bits) has(i int) bool { return b.of.Load()&(1<<i) != 0 }
func (b *bits) add(i int)      { b.of.Or(1 << i) }
func (b *bits) remove(i int)   { b.of.And(^(1 << i)) }

// enter puts a call in its line. If it must wait and may do so only for so long, it returns what the calls before it
// ask of each limit. That takes time in proportion to their number.
func (l *Lines) enter(keys any, w *waiter, hurried bool) (ahead [][]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[keys]
	if q == nil {
		if l.lines == nil {
			l.lines = map[any]*line{}
		}
		q = new(line)
		if q.queued = q.few[:]; len(w.limits) > few {
			q.queued = make([]int64, len(w.limits))
		}
		l.lines[keys] = q
	}
	before := q.last(w.call)
	if q.turn != nil {
		w.ready = make(chan struct{})
		if hurried || !allPatient(w.limits) {
			ahead = q.ahead(before, w.limits)
		}
	}
	if before == nil {
		w.at = q.calls.PushFront(w)
	} else {
		w.at = q.calls.InsertAfter(w, before)
	}
	for i := range w.limits {
		q.queued[i] = saturate.Add(q.queued[i], int64(w.limits[i].Permits))
	}
	if q.turn == nil {
		q.next()
	}
	return ahead
}

// recount updates a call's permits before it reserves: an estimate may have improved while it waited.
func (l *Lines) recount(keys any, w *waiter) {
	for i := range w.limits {
		m := &w.limits[i]
		if m.Recount == nil {
			continue
		}
		n := max(1, m.Recount())
		l.mu.Lock()
		l.lines[keys].queued[i] += int64(n - m.Permits)
		m.Permits = n
		l.mu.Unlock()
	}
}

// pass gives the turn of a call to the next one, before it goes.
func (l *Lines) pass(keys any, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.lines[keys]; q != nil && q.turn == w { // the line may be over when a timer calls
		q.next()
	}
}

// leave takes a call out of its line, and gives its turn to the next one.
func (l *Lines) leave(keys any, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[keys]
	q.calls.Remove(w.at)
	for i := range w.limits {
		q.queued[i] -= int64(w.limits[i].Permits)
	}
	switch {
	case q.calls.Len() == 0:
		delete(l.lines, keys)
	case q.turn == w:
		q.next()
	}
}

// next gives the turn to the first call that has not had it.
func (q *line) next() {
	q.turn = nil
	for e := q.calls.Front(); e != nil; e = e.Next() {
		if w := e.Value.(*waiter); !w.first {
			w.first, q.turn = true, w
			if w.ready != nil {
				close(w.ready)
			}
			return
		}
	}
}

// last returns the call behind which a call of that number belongs: nil if it belongs at the front.
func (q *line) last(call uint64) *list.Element {
	e := q.calls.Back()
	for e != nil && e.Value.(*waiter).call > call && !e.Value.(*waiter).first {
		e = e.Prev()
	}
	return e
}

// ahead returns what the calls up to last ask of each limit and have not reserved: the sizes of their requests, or
// their sum where only that matters.
func (q *line) ahead(last *list.Element, limits []Limit) [][]int {
	ahead := make([][]int, len(limits))
	for i := range limits {
		if !limits[i].summed() {
			ahead[i] = q.sizesAhead(i, last)
		} else if sum := q.sumAhead(i, last); sum > 0 {
			ahead[i] = []int{int(sum)}
		}
	}
	return ahead
}

func (q *line) sizesAhead(i int, last *list.Element) (sizes []int) {
	for e := last; e != nil; e = e.Prev() {
		if w := e.Value.(*waiter); !w.reserved.has(i) {
			sizes = append(sizes, w.limits[i].Permits)
		}
	}
	slices.Reverse(sizes)
	return sizes
}

// sumAhead is the sum of sizesAhead. It looks only at the few calls behind last, and at the calls whose turn has begun.
func (q *line) sumAhead(i int, last *list.Element) int64 {
	sum := q.queued[i]
	for e := q.calls.Back(); e != nil && e != last; e = e.Prev() {
		sum -= int64(e.Value.(*waiter).limits[i].Permits)
	}
	for e := q.calls.Front(); e != nil && e.Value.(*waiter).first; e = e.Next() {
		if w := e.Value.(*waiter); w.reserved.has(i) {
			sum -= int64(w.limits[i].Permits)
		}
	}
	return sum
}
