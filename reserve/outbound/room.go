package outbound

import (
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
