package window

import (
	"math"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/smooth"
)

// A ledger lists the requests granted within the last per and the waiting ones, in order. The first waiting request is
// granted at the first time t at which its permits and those granted in (t-per, t] are at most the window's size: see
// place.go. Times are on the window's clock, which stands still during a pause.
type ledger struct {
	config  *config // for requests from now on
	rate    float64
	margin  int64 // for which a permit counts longer than by the rate
	until   int64 // the end of the latest pause
	stopped int64 // no request is granted before; unlike in a pause, the window's clock runs on

	ring    ring
	granted int    // the first so many requests of the list are granted, the others wait
	empty   int    // so many requests of the list have no permits left
	number  uint64 // the newest request's number
	forgot  uint64 // the number of the newest request that has left the list
	longest int64  // the longest per of any request in the list

	placed int   // the times of the first so many requests are known
	floor  int64 // the other requests are not granted before this time
	oldest int   // the first request in the stretch that was looked at last, which ends at placed
	held   sum   // the permits in that stretch
	uses   uses  // the permits that are not in the list: see use.go
}

// A config is immutable: each request points to its own.
type config struct {
	size   uint64
	per    int64
	since  int64 // permits granted up to this time have left the window
	behind int64 // how far the window's clock is behind the limiter's: the sum of the pauses so far
}

func newLedger(now int64, size int, per int64, rate float64) *ledger {
	return &ledger{
		config: &config{size: uint64(size), per: per, since: math.MinInt64}, rate: rate,
		until: now, stopped: now, floor: now, longest: per,
	}
}

func (l *ledger) Size() (capacity float64, largest int) {
	return float64(l.config.size), int(l.config.size)
}

func (l *ledger) most() int { return int(l.config.size) }

func (l *ledger) Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool) {
	if permits > l.most() {
		return smooth.Slot{}, never, false
	}
	l.advance(now)
	at := l.next(uint64(permits), l.config)
	if ready = saturate.Add(at, l.config.behind); ready > latest {
		return smooth.Slot{}, ready, false
	}
	l.push(uint64(permits), at, l.config, !l.waiting() && ready <= now)
	return smooth.Slot{Number: l.number, Permits: permits}, ready, true
}

func (l *ledger) Take(now int64, permits int) bool {
	if now < l.Paused() || permits > l.most() {
		return false
	}
	l.advance(now)
	if used := l.used(); l.waiting() || used.exceeds(l.config.size-uint64(permits)) {
		return false
	}
	l.push(uint64(permits), l.floor, l.config, true)
	return true
}

// Charge counts the permits from when they are first in the queue.
func (l *ledger) Charge(now int64, permits int) {
	l.advance(now)
	l.push(uint64(permits), l.next(uint64(permits), nil), nil, !l.waiting())
}

// push appends a request with a known time; now: it is granted at once.
func (l *ledger) push(permits uint64, at int64, by *config, now bool) {
	l.number++
	if now {
		by = l.config
		if last := l.ring.length - 1; last >= 0 {
			if r := l.ring.at(last); r.at == at && r.config == by && r.permits+permits > permits {
				r.number = l.number
				r.permits += permits
				if l.oldest <= last {
					l.held.add(permits)
				}
				return
			}
		}
		l.granted++
	}
	l.ring.push(request{number: l.number, permits: permits, at: at, config: by})
	l.placed++
	l.held.add(permits)
}

func (l *ledger) Return(now int64, slot smooth.Slot, kept int) {
	l.advance(now)
	i, back := l.ring.find(slot.Number), uint64(slot.Permits-kept)
	switch {
	case slot.Number >= inUse:
		l.uses.back(slot, back)
		l.unplace(l.granted)
	case slot.Number > l.forgot && i < l.ring.length:
		l.unplace(max(i, l.granted))
		l.remove(i, back)
	}
}

func (l *ledger) remove(i int, back uint64) {
	r := l.ring.at(i)
	r.permits -= back
	if l.oldest <= i && i < l.placed {
		l.held.sub(back)
	}
	if r.permits == 0 {
		if i >= l.granted {
			r.config = nil // it needs no room
		}
		l.empty++
		l.tidy()
	}
}

func (l *ledger) Ready(now int64, number uint64) (ready int64, known bool) {
	l.advance(now)
	switch i := l.ring.find(number); {
	case number <= l.forgot, i == l.ring.length:
		return 0, false
	case i < l.granted:
		r := l.ring.at(i)
		return r.at + r.config.behind, true
	default:
		for l.placed <= i {
			l.place()
		}
		return saturate.Add(l.ring.at(i).at, l.config.behind), true
	}
}

func (l *ledger) Waits(now int64, number uint64) bool {
	l.advance(now)
	i := l.ring.find(number)
	return i >= l.granted && i < l.ring.length
}

func (l *ledger) Rate() float64 { return l.rate }

func (l *ledger) Stored(now int64) float64 {
	l.advance(now)
	if used := l.used(); !l.waiting() && !used.exceeds(l.config.size) {
		return float64(l.config.size - used.low)
	}
	return 0
}

func (l *ledger) Level(now int64) float64 {
	l.advance(now)
	used := float64(l.uses.out.low)
	from := max(l.floor-l.config.per, l.config.since)
	for _, u := range l.uses.ended {
		if u.at > from {
			used += float64(u.permits)
		}
	}
	for i := range l.ring.length {
		if r := l.ring.at(i); r.at > from || i >= l.granted {
			used += float64(r.permits)
		}
	}
	return float64(l.config.size) - used
}

func (l *ledger) NextFree(now int64) int64 {
	l.advance(now)
	return saturate.Add(l.next(1, l.config), l.config.behind)
}

func (l *ledger) Idle(now int64) bool {
	l.advance(now)
	return !l.waiting() && now >= l.Paused()
}
