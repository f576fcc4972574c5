package queue

import (
	"context"
	"time"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
)

// patience bounds the rounds: two busy limits may never both have room.
const patience = 4

// A hold is reserved at all limits of an option (full), or at the one that has room last.
type hold struct {
	place  *Place
	option int
	parts  []Part
	last   int // of parts: the one to wait for
	rounds uint8
	full   bool
	due    bool          // the time of last has come
	asked  time.Duration // the delay when it was made
	epoch  int64         // of the queue, when other options were compared last
	one    [1]Part
}

// A Part is a reservation at one limit.
type Part struct {
	r      *reserve.Reservation // nil: there is none
	memory reserve.Reservation  // of the first one, for which a caller may still wait
	taken  bool                 // memory is
	paused bool                 // it is only at the limit's pause
}

func (h *hold) limits() []Limit { return h.place.Options[h.option].Limits }

// fill reserves at all limits if the last has room within the slack; else only there. The place must not have the hold.
func (h *hold) fill(ctx context.Context, maxWait time.Duration) error {
	limits := h.limits()
	slack := h.place.queue.slack(limits)
	keep := h.rounds < patience && len(limits) > 1
	h.rounds++
	if keep {
		if last, wait := h.latest(); wait > slack {
			h.giveBack(last)
			return h.take(ctx, last, maxWait)
		}
	}
	for i := range limits {
		if err := h.take(ctx, i, maxWait); err != nil {
			h.cancel()
			return err
		}
	}
	h.full, h.due = true, false
	longest := time.Duration(-1)
	for i := range h.parts {
		if d := h.delayOf(i); d > longest {
			h.last, longest = i, d
		}
		h.full = h.full && !h.parts[i].paused
	}
	if h.asked = longest; keep && longest > slack {
		h.giveBack(h.last)
		h.full = false
	}
	return nil
}

// slack is how long before its time the hold is due; 0 in a pause.
func (h *hold) slack() time.Duration {
	for i := range h.parts {
		if h.parts[i].paused {
			return 0
		}
	}
	return h.place.queue.slack(h.limits())
}

// fast is the rate from which waking late loses more than charging 2 ms too early.
const fast = 100

// slack is at most 2 ms at several limits, and 0 if one is slow.
func (q *Queue) slack(limits []Limit) time.Duration {
	if len(limits) == 1 || q.set.Slack == 0 {
		return q.set.Slack
	}
	rates, slow := 0, false
	for i := range limits {
		kind, rate := kindOf(limits[i].By), limits[i].rate()
		if kind != inFlight {
			rates++
		}
		slow = slow || rate > 0 && rate < fast || rate == 0 && kind == foreign
	}
	if rates > 1 && slow {
		return 0
	}
	return min(q.set.Slack, 2*time.Millisecond)
}

// latest returns which limit has room last, and when.
func (h *hold) latest() (last int, longest time.Duration) {
	limits := h.limits()
	for i := range limits {
		var wait time.Duration
		if p := &h.parts[i]; p.r != nil && !p.paused {
			wait = max(h.delayOf(i), limits[i].paused())
		} else {
			wait, _ = limits[i].wait(limits[i].permits(h.place))
		}
		if wait > longest {
			last, longest = i, wait
		}
	}
	return last, longest
}

func (h *hold) take(ctx context.Context, i int, maxWait time.Duration) (err error) {
	p, l := &h.parts[i], &h.limits()[i]
	if p.r != nil && (p.paused || l.paused() > 0) {
		if p.paused && l.paused() > 0 && p.r.Delay() > 0 {
			h.last, h.full, h.due = i, false, false
			return nil
		}
		h.drop(i) // the pause is over, or there is one now: then permits that are bought would be forgotten by its end
	}
	if p.r == nil {
		r := &p.memory
		if p.taken {
			r = new(reserve.Reservation)
		}
		p.taken = true
		if p.paused, err = l.reserve(ctx, l.permits(h.place), maxWait, r); err != nil {
			return err
		}
		p.r = r
	}
	h.last, h.full, h.due = i, len(h.parts) == 1 && !p.paused, false
	h.asked = h.delay()
	return nil
}

func (h *hold) giveBack(but int) {
	for i := range h.parts {
		if i != but {
			h.drop(i)
		}
	}
}

func (h *hold) drop(i int) {
	if p := &h.parts[i]; p.r != nil {
		p.r.Cancel()
		p.r, p.paused = nil, false
	}
}

func (h *hold) cancel() {
	for i := len(h.parts) - 1; i >= 0; i-- {
		if r := h.parts[i].r; r != nil {
			r.Cancel()
		}
	}
}

// settle settles limits that the request asks for its own permits; at 0, all.
func (h *hold) settle(actual int) {
	for i := len(h.parts) - 1; i >= 0; i-- { // a group's own limit first: else another group would get what comes back
		if actual == 0 || h.limits()[i].Permits == 0 {
			h.parts[i].r.Settle(actual)
		}
	}
}

func (h *hold) granted() {
	for i := range h.parts {
		(*engine.Reservation)(h.parts[i].r).Count()
	}
}

func (h *hold) awaited() *reserve.Reservation { return h.parts[h.last].r }

func (h *hold) time() time.Time { return h.awaited().At() }

func (h *hold) delay() (longest time.Duration) {
	for i := range h.parts {
		switch {
		case h.parts[i].r == nil:
		case h.due && i == h.last:
			longest = max(longest, h.pause(i))
		default:
			longest = max(longest, h.delayOf(i))
		}
	}
	return longest
}

func (h *hold) delayOf(i int) time.Duration {
	return max(h.parts[i].r.Delay(), h.pause(i))
}

// pause returns how long a limit with a reservation is paused.
func (h *hold) pause(i int) time.Duration {
	if h.parts[i].paused {
		return 0
	}
	return h.limits()[i].paused()
}

// arrived reports whether the time has come. If another part is later now, it awaits that.
func (h *hold) arrived() bool {
	h.due = true
	longest, last := time.Duration(0), h.last
	for i := range h.parts {
		if i != h.last && h.parts[i].r != nil && h.delayOf(i) > longest {
			longest, last = h.delayOf(i), i
		}
	}
	h.due = last == h.last
	h.last = last
	return h.due
}

func (h *hold) wouldWait() time.Duration {
	longest := h.delay()
	for i, l := range h.limits() {
		if !h.full && (h.parts[i].r == nil || h.parts[i].paused) {
			d, err := l.known(l.permits(h.place))
			if err != nil {
				return reserve.Forever
			}
			longest = max(longest, d)
		}
	}
	return longest
}

// wait waits for all parts, and gives all back if that fails.
func (h *hold) wait(ctx context.Context) error {
	for i := range h.parts {
		if i = (h.last + i) % len(h.parts); h.delayOf(i) > 0 {
			if err := h.parts[i].r.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *hold) has(limit int) bool { return limit < len(h.parts) && h.parts[limit].r != nil }

// at returns which part is at a limit, or -1.
func (h *hold) at(l *Limit) int {
	if h != nil {
		for j := range h.parts {
			if h.parts[j].r != nil && !h.parts[j].paused && l.same(h.limits()[j]) {
				return j
			}
		}
	}
	return -1
}
