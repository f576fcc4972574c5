package window

import (
	"math"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/smooth"
)

// A ledger keeps the requests that have gone within the last per and those that wait, in one
// list, in the order in which they were made. The rule is:
//
//	first come, first served; the first in the queue goes as soon as the stretch (t-per, t] up
//	to now has room for its permits, beside those that went in it and were kept.
//
// The time of each that waits is what follows from those in front of it. It is worked out when
// it is asked for, and kept until something in front of it changes: see place.go.
//
// All times in the list are on the window's clock, which stands still during a pause.
type ledger struct {
	rule  *rule // for those that ask now
	rate  float64
	until int64 // the end of the latest pause
	// No request goes before this time; other than in a pause, the window's clock runs on.
	stopped int64

	ring    ring
	gone    int    // how many of the list have gone
	empty   int    // how many of the list have no permits left
	number  uint64 // of the newest request
	forgot  uint64 // of the newest request that has left the list
	longest int64  // no per that anybody goes by is longer

	placed int   // the times of so many of the list are known
	floor  int64 // the others don't go before this time
	oldest int   // the list from here up to placed are in the stretch that was looked at last,
	held   sum   // and have so many permits
}

// A rule is what a limiter keeps to between one change and the next. It does not change itself.
type rule struct {
	size   uint64
	per    int64
	since  int64 // what went up to this time has left the window
	behind int64 // by how much the window's clock is behind, for the pauses so far
}

func newLedger(now int64, size int, per int64, rate float64) *ledger {
	return &ledger{
		rule: &rule{size: uint64(size), per: per, since: math.MinInt64}, rate: rate,
		until: now, stopped: now, floor: now, longest: per,
	}
}

// Max is how many permits one request may have: see reserve.SizeError.
func (l *ledger) Max() int { return int(l.rule.size) }

// Reserve promises permits, behind all that wait.
func (l *ledger) Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool) {
	if permits > l.Max() {
		return smooth.Slot{}, never, false
	}
	l.advance(now)
	at := l.next(uint64(permits), l.rule)
	if ready = saturate.Add(at, l.rule.behind); ready > latest {
		return smooth.Slot{}, ready, false
	}
	l.push(uint64(permits), at, l.rule, !l.waiting() && ready <= now)
	return smooth.Slot{Number: l.number, Permits: permits}, ready, true
}

// Take takes permits if nobody waits and they fit now.
func (l *ledger) Take(now int64, permits int) bool {
	if now < l.Paused() || permits > l.Max() {
		return false
	}
	l.advance(now)
	if l.waiting() || l.used().exceeds(l.rule.size-uint64(permits)) {
		return false
	}
	l.push(uint64(permits), l.floor, l.rule, true)
	return true
}

// Charge notes permits that were used already. They count from when they are first in the queue,
// whether there is room for them or not.
func (l *ledger) Charge(now int64, permits int) {
	l.advance(now)
	l.push(uint64(permits), l.next(uint64(permits), nil), nil, !l.waiting())
}

// push appends a request whose time is known; now says that this is now.
func (l *ledger) push(permits uint64, at int64, by *rule, now bool) {
	l.number++
	if now {
		by = l.rule
		if last := l.ring.length - 1; last >= 0 {
			if r := l.ring.at(last); r.at == at && r.rule == by && r.permits+permits > permits {
				r.number = l.number
				r.permits += permits
				if l.oldest <= last {
					l.held.add(permits)
				}
				return
			}
		}
		l.gone++
	}
	l.ring.push(request{number: l.number, permits: permits, at: at, rule: by})
	l.placed++
	l.held.add(permits)
}

// Return takes permits out of the list, and those behind them move up. (Those that may go now
// do so at the next call, whenever that is, as of now: see floor.)
func (l *ledger) Return(now int64, slot smooth.Slot, kept int) {
	l.advance(now)
	i := l.ring.find(slot.Number)
	if slot.Number <= l.forgot || i == l.ring.length {
		return
	}
	l.unplace(max(i, l.gone))
	r, back := l.ring.at(i), uint64(slot.Permits-kept)
	r.permits -= back
	if l.oldest <= i && i < l.placed {
		l.held.sub(back)
	}
	if r.permits == 0 {
		if i >= l.gone {
			r.rule = nil // it waits for no room
		}
		l.empty++
		l.tidy()
	}
}

// Ready returns when a request goes, or went; of one that has left the list that is not known.
func (l *ledger) Ready(now int64, number uint64) (ready int64, known bool) {
	l.advance(now)
	switch i := l.ring.find(number); {
	case number <= l.forgot, i == l.ring.length:
		return 0, false
	case i < l.gone:
		r := l.ring.at(i)
		return r.at + r.rule.behind, true
	default:
		for l.placed <= i {
			l.place()
		}
		return saturate.Add(l.ring.at(i).at, l.rule.behind), true
	}
}

// Waits reports whether a request waits.
func (l *ledger) Waits(now int64, number uint64) bool {
	l.advance(now)
	i := l.ring.find(number)
	return i >= l.gone && i < l.ring.length
}

// Stalls tells the limiter that a stall of the program is a pause of the window. Otherwise callers whose
// times passed during it would go at once, after they have left the window.
func (l *ledger) Stalls() {}

// Rate returns the number of permits per second.
func (l *ledger) Rate() float64 { return l.rate }

// Stored returns how many permits the window has room for now; none while somebody waits.
func (l *ledger) Stored(now int64) float64 {
	l.advance(now)
	if used := l.used(); !l.waiting() && !used.exceeds(l.rule.size) {
		return float64(l.rule.size - used.low)
	}
	return 0
}

// Level returns how many permits the window has room for now, less those that requests wait for.
func (l *ledger) Level(now int64) float64 {
	l.advance(now)
	used := 0.0
	from := max(l.floor-l.rule.per, l.rule.since)
	for i := range l.ring.length {
		if r := l.ring.at(i); r.at > from || i >= l.gone {
			used += float64(r.permits)
		}
	}
	return float64(l.rule.size) - used
}

// NextFree returns when a request for one permit would be ready.
func (l *ledger) NextFree(now int64) int64 {
	l.advance(now)
	return saturate.Add(l.next(1, l.rule), l.rule.behind)
}

// Idle reports whether nothing that was promised is still to come. Then package keyed may
// drop a key's window, if no permit is held in it either.
func (l *ledger) Idle(now int64) bool {
	l.advance(now)
	return !l.waiting() && now >= l.Paused()
}
