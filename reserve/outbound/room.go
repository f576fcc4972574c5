package outbound

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/internal/queue"
)

// A room bounds how many calls of a limit's key are out, if its limiter has no rate.
//
// After a refusal one call goes first, and each accepted call lets two more go, up to most: the calls that were out and
// not refused, at least half of those out, and one more every 8 stops. A server that allows ten calls at a time and
// stops all for 30 s at an eleventh refuses six of 16, then one in four minutes. No more go than a response says are
// left.
type room struct {
	places *queue.Places

	mu      sync.Mutex
	event   time.Time     // the first of the latest refusals; those of calls sent before belong to it
	stop    time.Duration // the longest of the event
	out     int           // at the event
	refusal int           // of those out
	n       int           // may be out after a refusal
	most    int           // to which n grows
	grown   time.Time

	left int       // may be out by what is left
	told time.Time // when the call was sent whose response said so
}

const (
	boundless = math.MaxInt
	perRoom   = 8 // stops, until one more call may be out
)

func newRoom() *room {
	return &room{places: queue.NewPlaces(boundless), n: boundless, most: boundless, left: boundless}
}

// roomOf returns the room of a limit; nil if it has a rate, or one is being found and no window is known.
func (a *charge) roomOf() *room {
	by, ok := a.By.(interface{ Rate() float64 })
	if !ok || a.rate == nil && !math.IsInf(by.Rate(), 1) {
		return nil
	}
	if window := a.said != nil && a.said.Ends > 0; a.state.room.Load() == nil && (a.rate == nil || window) {
		a.state.room.CompareAndSwap(nil, newRoom())
	}
	return a.state.room.Load()
}

func (r *room) refused(sent, heard time.Time, stop time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent.After(r.event) {
		r.event, r.stop, r.out, r.refusal, r.n = heard, 0, r.places.Out(), 0, 1
	}
	r.refusal++
	r.stop, r.grown = max(r.stop, stop), heard.Add(stop)
	if r.out > 1 { // else it says nothing of how many may be out
		r.most = max(r.out-r.refusal, r.out/2)
	}
	r.places.Resize(min(r.n, r.left))
}

// accepted gets how many calls are left: boundless, if the response says nothing.
func (r *room) accepted(sent, heard time.Time, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n < boundless && sent.After(r.event) {
		if more := int(heard.Sub(r.grown) / (perRoom * max(r.stop, time.Millisecond))); more > 0 {
			r.most, r.grown = min(r.most, math.MaxInt32)+more, heard
		}
		r.n = min(r.n+1, r.most)
	}
	if sent.After(r.told) {
		r.left, r.told = left, sent
	}
	r.left = max(1, min(r.left, left)) // a call that was sent before may have arrived after
	r.places.Resize(min(r.n, r.left))
}

// leftFor returns how many calls of this cost the response says are left.
func (a *charge) leftFor(took time.Duration) int {
	l := a.said
	if l == nil || l.Left < 0 || a.limit.exact {
		return boundless
	}
	left := l.Left / float64(max(1, a.Permits))
	if l.Bucket {
		left += l.Rate * took.Seconds() // refilled meanwhile
	}
	if left >= math.MaxInt32 {
		return boundless
	}
	return int(left)
}

func (c *call) makeRoom(v *verdict) {
	for i, all := 0, c.concerned(); i < len(all); i++ {
		a, ruling := &all[i], &v.rulings[i]
		if a.room == nil {
			a.room = a.roomOf()
		}
		switch {
		case a.room == nil:
		case !v.refused:
			a.room.accepted(c.sent, c.heard, a.leftFor(c.heard.Sub(c.sent)))
		case !ruling.blamed || c.attempt.block > 0 || a.rate != nil: // one goes at a time, or by the rate
		case ruling.stop > 0 || c.response.StatusCode < 500 && !c.t.pauseRefused:
			a.room.refused(c.sent, c.heard, cmp.Or(ruling.stop, v.after))
		}
	}
}
