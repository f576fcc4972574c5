package outbound

import (
	"math"
	"sync"
	"time"

	"github.com/nextfree/pace/reserve/internal/queue"
)

// A room bounds how many calls of one limit's key are out, where its limiter has no rate: by what answers say. There
// are two bounds, and the lower one counts.
//
// After a refusal that stops the key one call goes first, and each that is accepted lets two more go, up to as many as
// were out and not refused, but at least a half and at most 0.7 of those that were out. From then on there is one more
// each 8 stops. A server that allows ten calls at a time, and stops all for 30 s if there is an eleventh, refuses six
// of 16, and then one in four minutes.
//
// A limit in a window lets as many go after the stop as before it. So as many go as were accepted between the two
// latest refusals, and then one alone. If that is accepted, too, the limit is another one, and each that is accepted
// lets two more go again.
//
// What a response says is left, less what is out, may go: the next responses say what is left then.
type room struct {
	places *queue.Places

	mu      sync.Mutex
	event   time.Time     // when the first of the latest refusals was heard; those of calls sent before belong to it
	stop    time.Duration // the longest of these
	out     int           // so many were out then
	refusal int           // so many of them were refused
	n       int           // so many may be out after a refusal
	most    int           // n grows to it by acceptances
	grown   time.Time     // when most grew
	passed  int           // calls accepted between the two latest events
	since   int           // calls accepted that were sent after the latest event

	left int       // so many may be out by what is left
	told time.Time // when the latest call was sent whose response said so
}

const (
	boundless = math.MaxInt
	perRoom   = 8 // stops, until one more call may be out
)

func newRoom() *room {
	return &room{places: queue.NewPlaces(boundless), n: boundless, most: boundless, left: boundless}
}

// roomOf returns the room of a limit without a rate. Nil: the limit has a rate, or one is being found and no window is
// known.
func (t *Transport) roomOf(a *charge) *room {
	by, ok := a.By.(interface{ Rate() float64 })
	if !ok || a.rate == nil && !math.IsInf(by.Rate(), 1) {
		return nil
	}
	key := keys{a.limit, a.key}
	r, ok := t.rooms.get(key)
	if window := a.said != nil && a.said.Ends > 0; !ok && (a.rate == nil || window) {
		r = t.rooms.getOr(key, newRoom())
	}
	return r
}

// refused notes that a call was refused, and stops the key for a time.
func (r *room) refused(sent, heard time.Time, stop time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent.After(r.event) {
		r.event, r.stop, r.out, r.refusal, r.n = heard, 0, r.places.Out(), 0, 1
		r.passed, r.since = r.since, 0
	}
	r.refusal++
	r.stop, r.grown = max(r.stop, stop), heard.Add(stop)
	if r.out > 1 { // else nobody else was out: it says nothing of how many may be
		r.most = max(1, min(max(r.out-r.refusal, r.out/2), r.out*7/10))
	}
	r.resize()
}

// accepted notes that a call was accepted, and how many are left by what the response says: boundless, if nothing.
func (r *room) accepted(sent, heard time.Time, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent.After(r.event) {
		r.since++
	} else {
		r.passed++
	}
	if !r.event.IsZero() && r.since == r.passed+1 {
		r.n = 1
	}
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
	r.resize()
}

func (r *room) resize() {
	n := r.n
	if n < boundless && r.since <= r.passed {
		n = min(n, max(1, r.passed-r.since))
	}
	r.places.Resize(min(n, r.left))
}

// leftFor returns how many calls like this one may be out by what the response says is left of the limit.
func (a *charge) leftFor(took time.Duration) int {
	l := a.said
	if l == nil || l.Left < 0 || a.limit.exact {
		return boundless
	}
	left := l.Left / float64(max(1, a.Permits))
	if l.Bucket {
		left += l.Rate * took.Seconds() // what comes while an answer is on its way
	}
	if left >= math.MaxInt32 {
		return boundless
	}
	return int(left)
}

// makeRoom tells the rooms of a call's limits what its response says.
func (c *call) makeRoom(v *verdict) {
	for i, all := 0, c.concerned(); i < len(all); i++ {
		a, ruling := &all[i], &v.rulings[i]
		if a.room == nil {
			a.room = c.t.roomOf(a)
		}
		switch {
		case a.room == nil:
		case !v.refused:
			a.room.accepted(c.sent, c.heard, a.leftFor(c.heard.Sub(c.sent)))
		case ruling.blamed && ruling.stop > 0 && c.attempt.block == 0 && a.rate == nil: // else one goes at a time
			a.room.refused(c.sent, c.heard, ruling.stop)
		}
	}
}
