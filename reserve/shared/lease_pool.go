package shared

import (
	"math"
	"slices"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

// A pool holds the permits that a process has bought in advance, and hands them out: it is the ledger of a limiter of
// this process. It is package smooth's ledger, on a clock that counts the permits that leases have made ready, in
// ticks. The clock stands still while the store's time belongs to other processes. So waiting, giving back and moving
// up are those of any limiter. Permits that were not bought can't be promised.
//
// All is guarded by that limiter's lock. Times are nanoseconds on its clock.
type pool struct {
	ledger    *smooth.Ledger // not embedded: it must never be asked by another clock
	upfront   bool
	horizon   int64
	intervals []interval // under way and to come: in order, none overlaps another
	passed    int64      // the ticks of those that are over
	last      int64      // what the clock showed last
	bought    int64      // permits, ever
	promised  int64      // of those, to callers; or given back
	leases    []*lease   // that may have permits left, oldest first
	back      []refund   // what expired leases had left
	demand    demand
	missed    demand  // of that, what was refused
	debt      float64 // how far ahead Redis was sold before the last purchase
	sold      int64   // the same, as it would look to a process that holds nothing
	low       int64   // when so many are promised
	wanted    func()  // is called
}

// An interval makes ticks of permits ready, evenly from its begin to its end.
type interval struct{ begin, end, ticks int64 }

// A lease is the permits of one purchase.
type lease struct {
	slot    slot
	expires int64 // then what is left goes back
}

// tick is how many ticks of the pool's clock a permit takes. One tick is too small for a caller to notice, and the
// clock can count 9e15 permits.
const tick = 1 << 10

// uncovered is the time of a request for which permits have to be bought first.
const uncovered = math.MaxInt64

// newPool returns a pool that holds nothing.
func newPool(upfront bool, horizon int64, wanted func()) *pool {
	const all = 1 << 40 // in a pool nothing is spilled
	curve := &smooth.Curve{Rate: 1e9 / tick, Capacity: all, Interval: tick, Refill: 1. / tick, Full: true}
	return &pool{
		ledger: smooth.New(curve, 0, 0, upfront), upfront: upfront, horizon: horizon,
		last: -1, low: math.MaxInt64, wanted: wanted,
	}
}

// free returns how many permits no caller was promised. It is negative if too many were promised.
func (p *pool) free() int64 { return p.bought - p.promised }

// waiting returns how many permits callers were promised and still wait for.
func (p *pool) waiting(now int64) int64 {
	ready := p.advance(now)
	if !p.upfront {
		ready += tick
	}
	return max(0, p.promised-ready/tick)
}

// advance returns what the clock shows now.
func (p *pool) advance(now int64) int64 {
	for len(p.leases) > 0 && p.leases[0].expires <= now {
		p.expire(now)
	}
	p.last = max(p.last, p.clock(now))
	if n := p.free(); n > 0 && len(p.leases) == 0 { // it came back when the leases were over
		p.use(n)
	}
	for len(p.intervals) > 0 && p.intervals[0].end <= now {
		p.passed += p.intervals[0].ticks
		p.intervals = slices.Delete(p.intervals, 0, 1)
	}
	return p.last
}

// clock returns what the clock shows at a time. Where a request pays later, it is granted when its first permit is
// ready. That of the next interval is not ready before that begins, so at the end of an interval the clock stops a
// tick short.
func (p *pool) clock(at int64) int64 {
	ticks, between := p.passed, true
	for _, s := range p.intervals {
		if at < s.begin {
			break
		}
		if at < s.end {
			ticks += int64(float64(s.ticks) * (float64(at-s.begin) / float64(s.end-s.begin)))
			between = false
			break
		}
		ticks += s.ticks
	}
	if between && !p.upfront {
		ticks--
	}
	return ticks
}

// at returns when the clock shows so many ticks; now, if it does already.
func (p *pool) at(now, ticks int64) int64 {
	if ticks <= p.last {
		return now
	}
	before := p.passed
	for _, s := range p.intervals {
		if rest := ticks - before; rest < s.ticks || p.upfront && rest == s.ticks {
			return max(now, s.begin+int64(math.Ceil(float64(s.end-s.begin)*(float64(rest)/float64(s.ticks)))))
		}
		before += s.ticks
	}
	return uncovered
}

// Reserve implements reserve.Ledger. A request for more than was bought is ready when it would be
// if the limiter had nothing else to do after the last stretch, if that is too late, and else
// uncovered.
func (p *pool) Reserve(now int64, permits int, latest int64) (smooth.Slot, int64, bool) {
	clock := p.advance(now)
	if short := int64(permits) - p.free(); short > 0 {
		if n := len(p.intervals); n > 0 && p.intervals[n-1].end > latest {
			return smooth.Slot{}, p.beyond(short), false
		}
		return smooth.Slot{}, uncovered, false
	}
	slot, ready, ok := p.ledger.Reserve(clock, permits, p.clock(latest))
	if !ok {
		return slot, max(p.at(now, ready), latest+1), false
	}
	p.promise(now, permits)
	return slot, p.at(now, ready), true
}

// beyond returns when permits could be had after the last stretch, at its speed.
func (p *pool) beyond(permits int64) int64 {
	s := p.intervals[len(p.intervals)-1]
	wait := float64(s.end-s.begin) / float64(s.ticks) * tick * float64(permits)
	return saturate.Add(s.end, int64(min(wait, longest)))
}

// Take implements reserve.Ledger.
func (p *pool) Take(now int64, permits int) bool {
	clock := p.advance(now)
	if int64(permits) > p.free() || !p.ledger.Take(clock, permits) {
		return false
	}
	p.promise(now, permits)
	return true
}

func (p *pool) promise(now int64, permits int) {
	p.demand.add(now, p.horizon, permits)
	if p.promised += int64(permits); p.promised >= p.low {
		p.low = math.MaxInt64
		p.wanted()
	}
}

// Charge implements reserve.Ledger: permits that go back, or are used up otherwise.
func (p *pool) Charge(now int64, permits int) {
	p.ledger.Charge(p.advance(now), permits)
	p.promised += int64(permits)
}

// Return implements reserve.Ledger.
func (p *pool) Return(now int64, slot smooth.Slot, kept int) {
	p.ledger.Return(p.advance(now), slot, kept)
	p.promised -= int64(slot.Permits - kept)
}

// Ready implements reserve.Ledger.
func (p *pool) Ready(now int64, number uint64) (int64, bool) {
	clock := p.advance(now)
	ready, known := p.ledger.Ready(clock, number)
	if !known || ready <= clock {
		return 0, false // it has gone
	}
	return p.at(now, ready), true
}

// Stored implements reserve.Ledger: the permits that are ready, and that no caller has been
// promised.
func (p *pool) Stored(now int64) float64 {
	return max(0, min(p.ledger.Stored(p.advance(now)), float64(p.free())))
}

// NextFree implements reserve.Ledger. If nothing is left it is now: then more can be bought.
func (p *pool) NextFree(now int64) int64 {
	clock := p.advance(now)
	if p.free() < 1 {
		return now
	}
	return p.at(now, p.ledger.NextFree(clock))
}

// Rate implements reserve.Ledger. Nothing asks for it.
func (p *pool) Rate() float64 { return p.ledger.Rate() }

// Pause, Resume, SetRate and Retime implement reserve.Ledger. They do nothing: leases are paused, resumed and changed
// in the store.
func (p *pool) Pause(int64, int64) bool { return false }
func (p *pool) Resume(int64) bool       { return false }
func (p *pool) SetRate(int64, float64)  {}
func (p *pool) Retime(int64, float64)   {}

// add puts the permits of a purchase into the pool, ready from its begin on.
func (p *pool) add(now, begin int64, s slot) *lease {
	p.advance(now)
	taken, cost := s.terms.curve.Price(s.stored, float64(s.permits))
	if s.deferred {
		taken, cost = float64(s.permits), 0
	}
	all := int64(s.permits) * tick
	atOnce := int64(0)
	if cost == 0 {
		atOnce = all
	} else if s.terms.curve.Free() { // then stored permits are ready at once
		atOnce = min(all, int64(taken*tick))
	}
	end := saturate.Add(begin, int64(cost))
	p.insert(interval{begin, begin, atOnce})
	p.insert(interval{begin, end, all - atOnce})
	// It buys when it holds least: the larger a process, the less it sees sold. Half of what it
	// has left makes up for that.
	own := 0.5 * float64(max(0, p.free())) * s.terms.curve.Interval
	p.debt, p.sold = s.begin, int64(min(s.begin+own, longest))
	p.bought += int64(s.permits)
	l := &lease{slot: s, expires: saturate.Add(end, p.horizon)}
	p.leases = append(p.leases, l)
	return l
}

// insert adds an interval behind those that begin before it, so that none overlaps. One that takes no time may lie in
// another.
func (p *pool) insert(s interval) {
	if s.ticks == 0 {
		return
	}
	i := 0
	for i < len(p.intervals) && p.intervals[i].begin <= s.begin {
		i++
	}
	if i > 0 && s.begin < p.intervals[i-1].end {
		before := &p.intervals[i-1]
		if s.begin < s.end {
			s.end += before.end - s.begin
			s.begin = before.end
		} else {
			ticks := int64(float64(before.ticks) * (float64(s.begin-before.begin) / float64(before.end-before.begin)))
			rest := interval{s.begin, before.end, before.ticks - ticks}
			before.end, before.ticks = s.begin, ticks
			p.intervals = slices.Insert(p.intervals, i, rest)
		}
	}
	p.intervals = slices.Insert(p.intervals, i, s)
	for i++; i < len(p.intervals); i++ {
		if late := p.intervals[i-1].end - p.intervals[i].begin; late > 0 {
			p.intervals[i].begin += late
			p.intervals[i].end += late
		}
	}
}

// expire takes what the oldest lease has left out of the pool. Permits are used in the order in
// which they were bought.
func (p *pool) expire(now int64) {
	oldest := p.leases[0]
	p.leases = slices.Delete(p.leases, 0, 1)
	left := p.free()
	for _, l := range p.leases {
		left -= int64(l.slot.permits)
	}
	p.last = max(p.last, p.clock(now))
	p.giveBack(oldest, left)
	p.use(left) // with what has come back of leases before it
}

// release takes all free permits out of the pool. Promises to callers stay in its leases, since some of them may come
// back.
func (p *pool) release(now int64) {
	p.advance(now)
	all := int64(0)
	for i := len(p.leases) - 1; i >= 0; i-- {
		all += p.giveBack(p.leases[i], p.free()-all)
	}
	p.leases = slices.DeleteFunc(p.leases, func(l *lease) bool { return l.slot.permits == 0 })
	p.low = math.MaxInt64
	p.cut(all)
	p.use(p.free())
}

// giveBack notes that so many permits of a lease go back, if it has them, and returns how many.
func (p *pool) giveBack(l *lease, permits int64) int64 {
	if permits = min(permits, int64(l.slot.permits)); permits <= 0 {
		return 0
	}
	p.back = append(p.back, l.refund(int(permits)))
	return permits
}

// use uses up permits that are free.
func (p *pool) use(permits int64) {
	if permits > 0 {
		p.ledger.Charge(p.last, int(permits))
		p.promised += permits
	}
}

// cut takes permits off the end of the intervals, so that others may be bought for that time: those
// that are not ready, nor promised.
func (p *pool) cut(permits int64) {
	permits = max(0, min(permits, (p.bought*tick-max(p.last+1, p.promised*tick))/tick))
	p.bought -= permits
	for ticks := permits * tick; ticks > 0; {
		i := len(p.intervals) - 1
		s := &p.intervals[i]
		if s.ticks > ticks {
			rest := s.ticks - ticks
			s.end = s.begin + int64(float64(s.end-s.begin)*(float64(rest)/float64(s.ticks)))
			s.ticks = rest
			break
		}
		ticks -= s.ticks
		p.intervals = p.intervals[:i]
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

var _ reserve.Ledger = (*pool)(nil)
