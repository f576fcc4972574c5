package outbound

import (
	"math"
	"sync"
	"time"

	"github.com/nextfree/pace/internal/queue"
)

// A room bounds how many calls of a limit's key are out, if its limiter has no rate.
//
// After a refusal one call goes first, and each accepted call lets two more go, up to most: the calls that were out
// and not refused, at least half of those out, and more every 8 stops. Of 16 calls at a server that allows ten and
// stops all for 30 s at an eleventh six are refused, then one in four minutes. A window allows as many after the stop
// as before it: the calls accepted between the two latest refusals, then one alone, unless that is accepted too.
//
// Of refusals without a time, one for every 25 accepted calls may come by chance.
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
	step    int // by which it grows next
	passed  int // accepted between the two latest events
	since   int // accepted, sent after the latest event

	chance float64 // how many refusals without a time say nothing

	left int       // may be out by what is left
	told time.Time // when the call was sent whose response said so
}

const (
	boundless = math.MaxInt
	perRoom   = 8 // stops, until more calls may be out
	// Calls refused when no more than these were left say nothing of how many may be out. But a short stop soon ends the
	// bound, and it saves refusals.
	shortStop = 5 * time.Second

	chancePart = 1. / 25 // of the accepted calls
	mostChance = 3
)

func newRoom() *room {
	return &room{places: queue.NewPlaces(boundless), n: boundless, most: boundless, left: boundless}
}

// refused gets the server's stop or, if it said no time (bare), the first backoff.
func (r *room) refused(sent, heard time.Time, stop time.Duration, bare bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bare && r.chance >= 1 {
		r.chance--
		return
	}
	if sent.After(r.event) {
		r.event, r.stop, r.out, r.refusal, r.n = heard, 0, r.places.Out(), 0, 1
		r.passed, r.since, r.step = r.since, 0, 1
	}
	r.refusal++
	r.stop, r.grown = max(r.stop, stop), heard.Add(stop)
	if r.out > 1 && (r.left > r.out || stop < shortStop) { // else it says nothing of how many may be out
		r.most = max(r.out-r.refusal, r.out/2)
	}
	r.resize()
}

// accepted gets how many calls are left: boundless, if the response says nothing.
func (r *room) accepted(sent, heard time.Time, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chance = min(r.chance+chancePart, mostChance)
	if sent.After(r.event) {
		r.since++
	} else {
		r.passed++
	}
	if !r.event.IsZero() && r.since == r.passed+1 {
		r.n = 1
	}
	if r.n < boundless && sent.After(r.event) {
		if heard.Sub(r.grown)/perRoom >= max(r.stop, time.Millisecond) {
			r.most, r.grown = min(r.most, math.MaxInt32)+r.step, heard
			r.step = min(2*r.step, math.MaxInt32)
		}
		r.n = min(r.n+1, r.most)
	}
	if sent.After(r.told) {
		r.left, r.told = left, sent
	}
	r.left = max(1, min(r.left, left)) // a call that was sent before may have arrived after
	r.resize()
}

func (r *room) resize() {
	n := r.n
	if n < boundless && r.since <= r.passed {
		n = min(n, max(1, r.passed-r.since))
	}
	r.places.Resize(min(n, r.left))
}
