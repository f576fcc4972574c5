package queue

import (
	"time"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
)

// A part is a reservation at one limit.
type part struct {
	r      *reserve.Reservation // nil: there is none
	memory reserve.Reservation  // of the first one, for which a caller may still wait
	taken  bool                 // memory is
	here   bool                 // a caller has waited for it
	lent   bool                 // it is another hold's until this hold is chosen
	due    int64                // when a promise of the user's is due, as it said last
}

func (h *hold) drop(p *part) {
	r, lent := p.r, p.lent
	p.r, p.lent = nil, false
	if !lent {
		(*engine.Reservation)(r).CancelBy(h.place.queue)
	}
}

// listen asks a limit that may block what the queue can't ask under its lock, and has it tell of changes.
func (h *hold) listen(p *part, l *Limit) {
	q := h.place.queue
	q.learn(l.By)
	p.due = add(q.clock.Now(), p.r.Delay())
	if of := sourceOf(p.r); of != nil {
		of.Watch(q.watcherOf(h.option))
	}
}

// delayAt returns the delay of a part; 0 if it holds nothing. Of the user's promises it is what they said last.
func (h *hold) delayAt(now int64, i int) time.Duration {
	p := &h.parts[i]
	switch {
	case p.r == nil || p.here:
		return 0
	case p.foreign(&h.limits()[i]):
		if p.due == never {
			return unknown
		}
		return max(0, time.Duration(saturate.Add(p.due, -now)))
	}
	return (*engine.Reservation)(p.r).DelayAt(h.place.queue.at(now))
}

func (p *part) foreign(l *Limit) bool {
	return (*engine.Reservation)(p.r).Limiter() == nil && l.blocks()
}

// cancel gives all parts back; when it returns, other queues' permits are free. For a caller that leaves, promises of
// the user's, and of stores, stay.
func (h *hold) cancel(leaves bool) {
	q := h.place.queue
	for i := len(h.parts) - 1; i >= 0; i-- {
		p := &h.parts[i]
		if p.r == nil || p.lent {
			continue
		}
		r, foreign := (*engine.Reservation)(p.r), p.foreign(&h.limits()[i])
		in, nested := r.Promise().(promise)
		if leaves && foreign && !nested {
			continue
		}
		switch p.r = nil; {
		case leaves && nested:
			in.giveUp()
		case foreign:
			defer r.CancelBy(q) // although another may panic
		default:
			r.CancelBy(q)
		}
	}
}

// at returns which part is at a limit of an option, or -1.
func (h *hold) at(option, limit int) int {
	if h == nil {
		return -1
	}
	if h.option == option && h.has(limit) {
		return limit
	}
	l := &h.place.Options[option].Limits[limit]
	for j := range h.parts {
		if h.has(j) && l.same(h.limits()[j]) {
			return j
		}
	}
	return -1
}

// borrow takes along what another hold of the place has at the same limits: its position there.
func (h *hold) borrow(old *hold) {
	limits := h.limits()
	for i := range limits {
		j := old.at(h.option, i)
		if j < 0 || old.limits()[j].permits(h.place) != limits[i].permits(h.place) {
			continue
		}
		r := old.parts[j].r
		taken := false
		for k := range i {
			taken = taken || h.parts[k].r == r
		}
		if !taken {
			h.parts[i].r, h.parts[i].lent = r, true
		}
	}
}

// keepLent makes what it has borrowed its own.
func (h *hold) keepLent(old *hold) {
	for i := range h.parts {
		p := &h.parts[i]
		for j := range old.parts {
			if p.lent && old.parts[j].r == p.r {
				old.parts[j].r = nil
			}
		}
		p.lent = false
	}
}

// A parting is what is to be given back of a place that has left, or asks anew.
type parting struct {
	hold *hold // may be nil
	asks *asks // nil: no limit was being asked
}

// parting counts a hold, if any, until left has given it back. The queue's lock is held.
func (p *Place) parting(h *hold) parting {
	if h != nil {
		p.queue.leaving++
	}
	return parting{h, p.asks}
}

// left gives back what a place has left, and looks. When it returns nothing of the place is in another queue. Where
// limits may block, all is given back only if it waits.
func (q *Queue) left(back parting, waits bool) {
	if back.asks != nil && q.prompt {
		<-back.asks.over
	}
	h := back.hold
	if h != nil && q.blocks && !waits {
		h.cancel(true)
		go q.giveBack(h)
	} else {
		q.giveBack(h)
	}
}

func (q *Queue) giveBack(h *hold) {
	defer q.changed()
	if h != nil {
		defer func() {
			q.mu.Lock()
			q.leaving--
			q.mu.Unlock()
		}()
		h.cancel(false)
	}
}
