package shared

import (
	"math"
	"slices"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

// A hand is the permits that a process has bought in advance, and how they are handed out: the
// ledger of a limiter of this process. It is package smooth's, with a clock that counts the permits
// that the leases have made ready, in parts: it stands still while stretches of other processes
// pass. So waiting, giving back and moving up are those of any limiter. Permits that were not
// bought can't be promised.
//
// All is guarded by that limiter's lock. Times are nanoseconds on its clock.
type hand struct {
	*smooth.Ledger
	upfront   bool
	horizon   int64
	stretches []stretch // under way and to come: in order, none overlaps another
	passed    int64     // the parts of those that are over
	last      int64     // what the clock showed last
	bought    int64     // permits, ever
	promised  int64     // of those, to callers; or given back
	leases    []*lease  // that may have permits left, oldest first
	back      []refund  // what expired leases had left
	demand    demand
	missed    demand  // of that, what was refused
	debt      float64 // how far ahead Redis was sold before the last purchase
	sold      int64   // the same, as it would look to a process that holds nothing
	low       int64   // when so many are promised
	wanted    func()  // is called
}

// A stretch makes parts of permits ready, evenly from its begin to its end.
type stretch struct{ begin, end, parts int64 }

// A lease is the permits of one purchase.
type lease struct {
	slot    slot
	expires int64 // then what is left goes back
}

// part is what a permit is on the hand's clock. So a part is small enough for no caller to notice,
// and the clock can count as many permits as a process will see.
const part = 1 << 10

// uncovered is when a request would be ready for which permits have to be bought first.
const uncovered = math.MaxInt64

// newHand returns a hand that holds nothing.
func newHand(upfront bool, horizon int64, wanted func()) *hand {
	const all = 1 << 40 // in a hand nothing is spilled
	curve := &smooth.Curve{Rate: 1e9 / part, Capacity: all, Interval: part, Refill: 1. / part, Full: true}
	return &hand{
		Ledger: smooth.New(curve, 0, 0, upfront), upfront: upfront, horizon: horizon,
		last: -1, low: math.MaxInt64, wanted: wanted,
	}
}

// free returns how many permits no caller has been promised. Less than 0: too many were.
func (h *hand) free() int64 { return h.bought - h.promised }

// waiting returns how many permits callers wait for, of those they were promised.
func (h *hand) waiting(now int64) int64 {
	ready := h.advance(now)
	if !h.upfront {
		ready += part
	}
	return max(0, h.promised-ready/part)
}

// advance returns what the clock shows now.
func (h *hand) advance(now int64) int64 {
	for len(h.leases) > 0 && h.leases[0].expires <= now {
		h.expire(now)
	}
	h.last = max(h.last, h.clock(now))
	if n := h.free(); n > 0 && len(h.leases) == 0 { // it came back when the leases were over
		h.use(n)
	}
	for len(h.stretches) > 0 && h.stretches[0].end <= now {
		h.passed += h.stretches[0].parts
		h.stretches = slices.Delete(h.stretches, 0, 1)
	}
	return h.last
}

// clock returns what the clock shows at a time. Paid later, a request goes when the first of its
// permits is ready, and that of the next stretch is not before that begins: at the end of a stretch
// the clock stops a part short.
func (h *hand) clock(at int64) int64 {
	parts, between := h.passed, true
	for _, s := range h.stretches {
		if at < s.begin {
			break
		}
		if at < s.end {
			parts += int64(float64(s.parts) * (float64(at-s.begin) / float64(s.end-s.begin)))
			between = false
			break
		}
		parts += s.parts
	}
	if between && !h.upfront {
		parts--
	}
	return parts
}

// at returns when the clock shows so many parts; now, if it does already.
func (h *hand) at(now, parts int64) int64 {
	if parts <= h.last {
		return now
	}
	before := h.passed
	for _, s := range h.stretches {
		if rest := parts - before; rest < s.parts || h.upfront && rest == s.parts {
			return max(now, s.begin+int64(math.Ceil(float64(s.end-s.begin)*(float64(rest)/float64(s.parts)))))
		}
		before += s.parts
	}
	return uncovered
}

// Reserve implements reserve.Ledger. A request for more than was bought is ready when it would be
// if the limiter had nothing else to do after the last stretch, if that is too late, and else
// uncovered.
func (h *hand) Reserve(now int64, permits int, latest int64) (smooth.Slot, int64, bool) {
	clock := h.advance(now)
	if short := int64(permits) - h.free(); short > 0 {
		if n := len(h.stretches); n > 0 && h.stretches[n-1].end > latest {
			return smooth.Slot{}, h.beyond(short), false
		}
		return smooth.Slot{}, uncovered, false
	}
	slot, ready, ok := h.Ledger.Reserve(clock, permits, h.clock(latest))
	if !ok {
		return slot, max(h.at(now, ready), latest+1), false
	}
	h.promise(now, permits)
	return slot, h.at(now, ready), true
}

// beyond returns when permits could be had after the last stretch, at its speed.
func (h *hand) beyond(permits int64) int64 {
	s := h.stretches[len(h.stretches)-1]
	wait := float64(s.end-s.begin) / float64(s.parts) * part * float64(permits)
	return saturate.Add(s.end, int64(min(wait, longest)))
}

// Take implements reserve.Ledger.
func (h *hand) Take(now int64, permits int) bool {
	clock := h.advance(now)
	if int64(permits) > h.free() || !h.Ledger.Take(clock, permits) {
		return false
	}
	h.promise(now, permits)
	return true
}

func (h *hand) promise(now int64, permits int) {
	h.demand.add(now, h.horizon, permits)
	if h.promised += int64(permits); h.promised >= h.low {
		h.low = math.MaxInt64
		h.wanted()
	}
}

// Charge implements reserve.Ledger: permits that go back, or are used up otherwise.
func (h *hand) Charge(now int64, permits int) {
	h.Ledger.Charge(h.advance(now), permits)
	h.promised += int64(permits)
}

// Return implements reserve.Ledger.
func (h *hand) Return(now int64, slot smooth.Slot, kept int) {
	h.Ledger.Return(h.advance(now), slot, kept)
	h.promised -= int64(slot.Permits - kept)
}

// Ready implements reserve.Ledger.
func (h *hand) Ready(now int64, number uint64) (int64, bool) {
	clock := h.advance(now)
	ready, known := h.Ledger.Ready(clock, number)
	if !known || ready <= clock {
		return 0, false // it has gone
	}
	return h.at(now, ready), true
}

// Stored implements reserve.Ledger: the permits that are ready, and that no caller has been
// promised.
func (h *hand) Stored(now int64) float64 {
	return max(0, min(h.Ledger.Stored(h.advance(now)), float64(h.free())))
}

// NextFree implements reserve.Ledger. If nothing is left it is now: then more can be bought.
func (h *hand) NextFree(now int64) int64 {
	clock := h.advance(now)
	if h.free() < 1 {
		return now
	}
	return h.at(now, h.Ledger.NextFree(clock))
}

// deal puts the permits of a purchase into the hand, ready from its begin on.
func (h *hand) deal(now, begin int64, s slot) *lease {
	h.advance(now)
	taken, cost := s.terms.curve.Price(s.stored, float64(s.permits))
	if s.deferred {
		taken, cost = float64(s.permits), 0
	}
	all := int64(s.permits) * part
	atOnce := int64(0)
	if cost == 0 {
		atOnce = all
	} else if s.terms.curve.Free() { // then stored permits are ready at once
		atOnce = min(all, int64(taken*part))
	}
	end := saturate.Add(begin, int64(cost))
	h.insert(stretch{begin, begin, atOnce})
	h.insert(stretch{begin, end, all - atOnce})
	// It buys when it holds least: the larger a process, the less it sees sold. Half of what it
	// has left makes up for that.
	own := 0.5 * float64(max(0, h.free())) * s.terms.curve.Interval
	h.debt, h.sold = s.begin, int64(min(s.begin+own, longest))
	h.bought += int64(s.permits)
	l := &lease{slot: s, expires: saturate.Add(end, h.horizon)}
	h.leases = append(h.leases, l)
	return l
}

// insert adds a stretch: behind those that begin before it, so that none overlaps. One that takes
// no time may lie in another.
func (h *hand) insert(s stretch) {
	if s.parts == 0 {
		return
	}
	i := 0
	for i < len(h.stretches) && h.stretches[i].begin <= s.begin {
		i++
	}
	if i > 0 && s.begin < h.stretches[i-1].end {
		before := &h.stretches[i-1]
		if s.begin < s.end {
			s.end += before.end - s.begin
			s.begin = before.end
		} else {
			parts := int64(float64(before.parts) * (float64(s.begin-before.begin) / float64(before.end-before.begin)))
			rest := stretch{s.begin, before.end, before.parts - parts}
			before.end, before.parts = s.begin, parts
			h.stretches = slices.Insert(h.stretches, i, rest)
		}
	}
	h.stretches = slices.Insert(h.stretches, i, s)
	for i++; i < len(h.stretches); i++ {
		if late := h.stretches[i-1].end - h.stretches[i].begin; late > 0 {
			h.stretches[i].begin += late
			h.stretches[i].end += late
		}
	}
}

// expire takes what the oldest lease has left out of the hand. Permits are used in the order in
// which they were bought.
func (h *hand) expire(now int64) {
	oldest := h.leases[0]
	h.leases = slices.Delete(h.leases, 0, 1)
	left := h.free()
	for _, l := range h.leases {
		left -= int64(l.slot.permits)
	}
	h.last = max(h.last, h.clock(now))
	h.giveBack(oldest, left)
	h.use(left) // with what has come back of leases before it
}

// fold takes all that is free out of the hand. Promises to callers stay in its leases, for
// some of that may come back.
func (h *hand) fold(now int64) {
	h.advance(now)
	all := int64(0)
	for i := len(h.leases) - 1; i >= 0; i-- {
		all += h.giveBack(h.leases[i], h.free()-all)
	}
	h.leases = slices.DeleteFunc(h.leases, func(l *lease) bool { return l.slot.permits == 0 })
	h.low = math.MaxInt64
	h.cut(all)
	h.use(h.free())
}

// giveBack notes that so many permits of a lease go back, if it has them, and returns how many.
func (h *hand) giveBack(l *lease, permits int64) int64 {
	if permits = min(permits, int64(l.slot.permits)); permits <= 0 {
		return 0
	}
	h.back = append(h.back, l.refund(int(permits)))
	return permits
}

// use uses up permits that are free.
func (h *hand) use(permits int64) {
	if permits > 0 {
		h.Ledger.Charge(h.last, int(permits))
		h.promised += permits
	}
}

// cut takes permits off the end of the stretches, so that others may be bought for that time: those
// that are not ready, nor promised.
func (h *hand) cut(permits int64) {
	permits = max(0, min(permits, (h.bought*part-max(h.last+1, h.promised*part))/part))
	h.bought -= permits
	for parts := permits * part; parts > 0; {
		i := len(h.stretches) - 1
		s := &h.stretches[i]
		if s.parts > parts {
			rest := s.parts - parts
			s.end = s.begin + int64(float64(s.end-s.begin)*(float64(rest)/float64(s.parts)))
			s.parts = rest
			break
		}
		parts -= s.parts
		h.stretches = h.stretches[:i]
	}
}

// refund takes permits off a lease, to be sent back: at most as many as it still has.
func (l *lease) refund(permits int) refund {
	r := refund{slot: l.slot, permits: min(permits, l.slot.permits)}
	l.slot.permits -= r.permits
	if t := l.slot.terms; t.upfront && !l.slot.deferred { // what is left lies at the end
		_, cost := t.curve.Price(r.slot.stored, float64(r.slot.permits))
		_, paid := t.curve.Price(r.slot.stored, float64(l.slot.permits))
		l.slot.begin += cost - paid
	}
	return r
}

var _ reserve.Ledger = (*hand)(nil)
