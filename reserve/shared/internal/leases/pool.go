package leases

import (
	"math"
	"slices"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

// A pool holds the permits that a process has bought, and hands them out: it is the ledger of a limiter of this
// process. It is package smooth's ledger, on the clock of the schedule. So waiting, giving back and moving up are
// those of any limiter. Permits that were not bought can't be promised.
//
// All is guarded by that limiter's lock. Times are nanoseconds on its clock.
type pool struct {
	schedule
	ledger   *smooth.Ledger // not embedded: it must never be asked by another clock
	horizon  int64
	bought   int64    // permits, ever
	promised int64    // of those, to callers; or given back
	leases   []*lease // that may have permits left, oldest first
	back     []Refund // what expired leases had left
	demand   demand
	missed   demand  // of that, what was refused
	debt     float64 // how far ahead the store was sold before the last purchase
	sold     int64   // the same, as it would look to a process that holds nothing
	low      int64   // when so many are promised, wanted is called
	wanted   func()
}

// A lease is the permits of one lot that have not gone back.
type lease struct {
	lot     Lot
	left    int   // not given back to the store
	expires int64 // then what no caller has gets back to the store
}

// newPool returns a pool that holds nothing.
func newPool(upfront bool, horizon int64, wanted func()) *pool {
	const all = 1 << 40 // in a pool nothing overflows
	curve := &smooth.Curve{Rate: 1e9 / tick, Capacity: all, Interval: tick, Refill: 1. / tick, Full: true}
	return &pool{
		schedule: schedule{upfront: upfront, last: -1},
		ledger:   smooth.New(curve, 0, 0, upfront),
		horizon:  horizon, low: math.MaxInt64, wanted: wanted,
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
	p.show(now)
	if n := p.free(); n > 0 && len(p.leases) == 0 { // it came back when the leases were over
		p.use(n)
	}
	p.forget(now)
	return p.last
}

// Reserve implements reserve.Ledger. A request for more than was bought is uncovered. But if it would be too late even
// with nothing else to do after the last lot, it is refused with that time.
func (p *pool) Reserve(now int64, permits int, latest int64) (smooth.Slot, int64, bool) {
	clock := p.advance(now)
	if short := int64(permits) - p.free(); short > 0 {
		if end, pace, ok := p.end(); ok && end > latest {
			return smooth.Slot{}, saturate.Add(end, int64(min(pace*float64(short), longest))), false
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
		return 0, false // it was granted
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

// add puts the permits of a lot into the pool.
func (p *pool) add(now int64, lot Lot) *lease {
	p.advance(now)
	all := int64(lot.Permits) * tick
	atOnce := min(all, int64(lot.AtOnce*tick))
	p.insert(interval{lot.Begin, lot.Begin, atOnce})
	p.insert(interval{lot.Begin, lot.End, all - atOnce})
	// It buys when it holds least: the larger a process, the less it sees sold. Half of what it
	// has left makes up for that.
	own := 0.5 * float64(max(0, p.free())) * lot.Interval
	p.debt, p.sold = lot.Ahead, int64(min(lot.Ahead+own, longest))
	p.bought += int64(lot.Permits)
	l := &lease{lot: lot, left: lot.Permits, expires: saturate.Add(lot.End, p.horizon)}
	p.leases = append(p.leases, l)
	return l
}

// expire takes what the oldest lease has left out of the pool. Permits are used in the order in
// which they were bought.
func (p *pool) expire(now int64) {
	oldest := p.leases[0]
	p.leases = slices.Delete(p.leases, 0, 1)
	left := p.free()
	for _, l := range p.leases {
		left -= int64(l.left)
	}
	p.show(now)
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
	p.leases = slices.DeleteFunc(p.leases, func(l *lease) bool { return l.left == 0 })
	p.low = math.MaxInt64
	// What is not ready, nor promised, leaves the schedule: others may buy that time.
	unready := max(0, min(all, (p.bought*tick-max(p.last+1, p.promised*tick))/tick))
	p.bought -= unready
	p.cut(unready * tick)
	p.use(p.free())
}

// giveBack notes that so many permits of a lease go back, if it has them, and returns how many.
func (p *pool) giveBack(l *lease, permits int64) int64 {
	if permits = min(permits, int64(l.left)); permits <= 0 {
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

// refund takes permits off a lease, to be sent back: at most as many as it still has.
func (l *lease) refund(permits int) Refund {
	r := Refund{Lot: l.lot, Left: l.left, Permits: min(permits, l.left)}
	l.left -= r.Permits
	return r
}

var _ reserve.Ledger = (*pool)(nil)
