package queue

import (
	"context"
	"time"

	"github.com/nextfree/pace/internal/allornothing"
	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve"
)

// patience bounds the rounds: two busy limits may never both have room.
const patience = 4

// A hold is reserved at all limits of an option (full), or at the one that has room last.
type hold struct {
	place   *Place
	parts   []part
	option  int
	last    int32 // of parts: the one to wait for
	rounds  uint8
	full    bool
	settled bool
	slack   time.Duration // how long before its time it is granted
	asked   time.Duration // the delay when it was made, or granted
	version uint64        // of the queue, when other options were compared last
	other   *retry        // nil: it has not compared them
	few     [2]part
}

// A retry is when a place asks other options that can't tell. Each time that they are no better it waits longer.
type retry struct {
	due  bool  // something has changed, or an option returned an error
	at   int64 // not before
	rest time.Duration
	lost uint64 // by option, of the first 64: it was no better although it had said so, and is not asked before either
}

func (h *hold) limits() []Limit { return h.place.Options[h.option].Limits }

// fill reserves at all limits; last where that may block. If one has no room within the slack, it reserves only there.
// The place must not have the hold.
func (h *hold) fill(ctx context.Context, maxWait time.Duration) error {
	h.rounds++
	h.full = false
	if len(h.parts) == 1 {
		err := h.take(ctx, 0, maxWait)
		if err == nil {
			h.measure()
			h.full = true
		}
		return err
	}
	for _, take := range [...]func(context.Context, time.Duration) error{h.takeLast, h.takeLocal, h.takeRest} {
		if err := take(ctx, maxWait); err != nil {
			return err
		}
		if h.asked > h.slack && h.rounds <= patience && !h.justInTime() {
			h.keep(int(h.last))
			return nil
		}
	}
	h.full = true
	return nil
}

// justInTime reports whether it is due at the place's deadline: there is no time to take the rest.
func (h *hold) justInTime() bool {
	p := h.place
	return p.until < never && add(p.queue.clock.Now(), h.asked) == p.until
}

// takeLast reserves at the limit that will have room last, if that is not now.
func (h *hold) takeLast(ctx context.Context, maxWait time.Duration) error {
	h.asked, h.slack = 0, 0
	if h.rounds > patience {
		return nil
	}
	last, wait := h.peek()
	if wait == 0 || wait <= h.place.queue.slack(h.limits()) {
		return nil
	}
	for i, l := range h.limits() {
		if i == last || l.same(h.limits()[last]) {
			if err := h.take(ctx, i, maxWait); err != nil {
				return err
			}
		}
	}
	h.measure()
	return nil
}

func (h *hold) takeLocal(ctx context.Context, maxWait time.Duration) error {
	return h.takeAll(ctx, maxWait, false)
}

func (h *hold) takeRest(ctx context.Context, maxWait time.Duration) error {
	return h.takeAll(ctx, maxWait, true)
}

// takeAll reserves at the limits that may block, or at the others.
func (h *hold) takeAll(ctx context.Context, maxWait time.Duration, blocking bool) error {
	taken := false
	for i, l := range h.limits() {
		if l.blocks() == blocking {
			if err := h.take(ctx, i, maxWait); err != nil {
				return err
			}
			taken = true
		}
	}
	if taken {
		h.measure()
	}
	return nil
}

func (h *hold) measure() {
	last, asked := h.latest(h.place.queue.lately())
	if h.last, h.asked, h.slack = int32(last), asked, 0; asked > 0 {
		h.slack = h.place.queue.slack(h.limits())
	}
}

// renew reserves anew where a full hold's permits would be charged too early, since its place has waited for another
// limit. Where others are before it, it keeps what it has.
func (h *hold) renew() {
	if len(h.parts) == 1 || h.rounds <= patience {
		return
	}
	for i, l := range h.limits() {
		if p := &h.parts[i]; i != int(h.last) && l.local() != nil {
			r := new(reserve.Reservation)
			if l.reserve(context.Background(), l.permits(h.place), 0, r) == nil {
				p.r.Cancel()
				p.r = r
			}
		}
	}
}

// keep gives back all parts but that one, and others at the same limit.
func (h *hold) keep(only int) {
	limits := h.limits()
	for i := range h.parts {
		if p := &h.parts[i]; i != only && p.r != nil && !limits[i].same(limits[only]) {
			h.drop(p)
		}
	}
}

// take reserves at a limit; after an error or a panic it gives back what is reserved at the others.
func (h *hold) take(ctx context.Context, i int, maxWait time.Duration) error {
	p, l := &h.parts[i], &h.limits()[i]
	if p.r != nil {
		return nil
	}
	r := &p.memory
	if p.taken {
		r = new(reserve.Reservation)
	}
	p.taken, p.here = true, false
	defer func() {
		if p.r == nil {
			h.cancel(false)
		}
	}()
	err := l.reserve(ctx, l.permits(h.place), maxWait, r)
	if err == nil {
		p.r = r
		if l.blocks() {
			h.listen(p, l)
		}
	}
	return err
}

// fast is the rate from which waking late loses more than charging 2 ms too early.
const fast = 100

// slack is at most 2 ms where it would charge a second limit, or a place in flight, too early; 0 if one is slow.
func (q *Queue) slack(limits []Limit) time.Duration {
	if len(limits) == 1 || q.set.Slack == 0 {
		return q.set.Slack
	}
	rates, slow := 0, false
	for i := range limits {
		of, rate := limits[i].By.Traits(), limit.Finite(limits[i].By)
		if !of.InFlight {
			rates++
		}
		slow = slow || rate > 0 && rate < fast || rate == 0 && of.Blocks && !of.Distant
	}
	if rates > 1 && slow {
		return 0
	}
	return min(q.set.Slack, 2*time.Millisecond)
}

// peek is latest, also of limits without a reservation.
func (h *hold) peek() (last int, longest time.Duration) {
	now := h.place.queue.lately()
	return allornothing.Last(len(h.parts), func(i int) time.Duration {
		if h.parts[i].r != nil {
			return h.delayAt(now, i)
		}
		wait, _ := h.place.ask(h.place.queue, now, h.option, i)
		return wait
	})
}

func (h *hold) latest(now int64) (last int, longest time.Duration) {
	for i := range h.parts {
		if d := h.delayAt(now, i); d > longest {
			last, longest = i, d
		}
	}
	return last, longest
}

// delay needs the queue's lock.
func (h *hold) delay() time.Duration {
	_, longest := h.latest(h.place.queue.seen)
	return longest
}

// present is the delay of a granted hold, by its reservations.
func (h *hold) present() (longest time.Duration) {
	for i := range h.parts {
		if p := &h.parts[i]; p.r != nil && !p.here {
			longest = max(longest, p.r.Delay())
		}
	}
	return longest
}

// arrived reports whether the time has come that a caller has waited for. If another part is later, it awaits that.
func (h *hold) arrived() bool {
	h.parts[h.last].here = true
	last, longest := h.latest(h.place.queue.seen)
	if longest > 0 {
		h.last = int32(last)
	}
	return longest == 0
}

// settle settles limits that the request asks for its own permits; at 0, all.
func (h *hold) settle(actual int) {
	for i := len(h.parts) - 1; i >= 0; i-- { // a class's own limit first: else another class would get what comes back
		if actual == 0 || h.limits()[i].Permits == 0 {
			h.parts[i].r.Settle(actual)
		}
	}
}

// own reports whether it waits for the limit of a class.
func (h *hold) own() bool { return h != nil && !h.full && h.limits()[h.last].Own }

func (h *hold) awaited() *reserve.Reservation { return h.parts[h.last].r }

func (h *hold) holds(r *reserve.Reservation) bool {
	for i := range h.parts {
		if h.parts[i].r == r {
			return true
		}
	}
	return false
}

// time returns when it is due, and needs the queue's lock.
func (h *hold) time() int64 {
	q, p := h.place.queue, &h.parts[h.last]
	switch {
	case p.foreign(&h.limits()[h.last]) && !q.distant:
		return p.due
	case (*engine.Reservation)(p.r).Limiter() == nil: // ours
		return q.clock.Since(p.r.At())
	}
	return (*engine.Reservation)(p.r).TimeAt(q.at(q.seen))
}

func (h *hold) wait(ctx context.Context) error {
	for i := range h.parts {
		i = (int(h.last) + i) % len(h.parts)
		if p := &h.parts[i]; p.r != nil && !p.here && p.r.Delay() > 0 {
			if err := h.parts[i].r.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *hold) has(limit int) bool { return limit < len(h.parts) && h.parts[limit].r != nil }
