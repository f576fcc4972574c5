package window

import "github.com/nextfree/pace/smooth"

// A ledger keeps the times of all permits that were granted within the last per or
// are promised, and gives a request the earliest time at which it breaks no rule:
//
//	for every s, the permits with times in (s-per, s] number at most size
//
// (what was used before anybody asked, see Charge, excepted). Times that have
// been given never move, so a request can only go where no stretch that holds its time
// is too full for it, be that a stretch before, around or after.
type ledger struct {
	size int
	rate float64
	per  int64
	ring ring
	shut []shut
}

// A shut says that there is no place for so many permits, or more, before a time. It
// is what earlier searches have found out, kept so that the next one begins there.
type shut struct {
	permits int
	before  int64
}

func newLedger(size int, per int64, rate float64) *ledger {
	return &ledger{size: size, rate: rate, per: per}
}

// Max is how many permits one request may have: see reserve.SizeError.
func (l *ledger) Max() int { return l.size }

// Reserve promises permits at the earliest time at which they fit, unless that is
// after latest.
func (l *ledger) Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ok bool) {
	if permits > l.size {
		return smooth.Slot{Ready: never}, false
	}
	l.forget(now)
	ready := l.search(now, permits)
	if ready > now {
		l.remember(now, shut{permits, ready})
	}
	if ready > latest {
		return smooth.Slot{Ready: ready}, false
	}
	l.ring.add(ready, uint64(permits))
	return smooth.Slot{Ready: ready, Permits: permits}, true
}

// Take takes permits if they fit now.
func (l *ledger) Take(now int64, permits int) bool {
	if l.begin(now, permits) > now {
		return false
	}
	_, ok := l.Reserve(now, permits, now)
	return ok
}

// Charge notes permits that were used already. If that is more than the rule
// allows, nobody goes until the stretches that hold them have room again.
func (l *ledger) Charge(now int64, permits int) {
	l.forget(now)
	// So many that they can't be counted say no more than too many.
	if held := l.held(now); held < tooMany {
		l.ring.add(now, min(uint64(permits), tooMany-held))
	}
}

// tooMany is more permits than any window holds, and leaves room to add a window to it.
const tooMany = 1 << 63

// Return takes back permits of a slot. Its time says which they are: a time is
// forgotten only when it has passed, so no other permits are granted then.
func (l *ledger) Return(now int64, slot smooth.Slot, permits int, _ bool) {
	if l.ring.permitsAt(slot.Ready) == 0 {
		return // it has left the window
	}
	l.ring.remove(slot.Ready, uint64(permits))
	// There may be a place now for who is less than per away from it. But nobody goes
	// in a stretch that is too full without it: right before it, or right behind.
	before, behind := l.held(slot.Ready-1), l.held(add(slot.Ready, l.per))
	for i := range l.shut {
		s := &l.shut[i]
		switch room := uint64(l.size - s.permits); {
		case slot.Ready < now && behind > room:
		case before > room:
			s.before = min(s.before, slot.Ready)
		default:
			s.before = min(s.before, slot.Ready-l.per+1)
		}
	}
}

// Rate returns the number of permits per second.
func (l *ledger) Rate() float64 { return l.rate }

// SetRate changes the length of the window. What has left it does not come back
// into a longer one.
func (l *ledger) SetRate(now int64, permitsPerSecond float64) {
	l.forget(now)
	l.rate, l.per = permitsPerSecond, length(l.size, permitsPerSecond)
	l.shut = l.shut[:0]
}

// Stored returns how many permits would be granted now.
func (l *ledger) Stored(now int64) float64 {
	most := l.held(now)
	end := add(now, l.per)
	for i := l.ring.after(now); i < l.ring.length; i++ {
		at := l.ring.time(i).at
		if at >= end {
			break
		}
		most = max(most, l.held(at))
	}
	if most >= uint64(l.size) {
		return 0
	}
	return float64(uint64(l.size) - most)
}

// NextFree returns when a request for one permit would be granted.
func (l *ledger) NextFree(now int64) int64 {
	ready := l.search(now, 1)
	if ready > now {
		l.remember(now, shut{1, ready})
	}
	return ready
}

// held returns the number of permits in the stretch that ends at a time.
func (l *ledger) held(at int64) uint64 {
	return l.ring.until(l.ring.after(at)) - l.ring.until(l.ring.after(at-l.per))
}

// forget drops what has left the window. What was granted at this very moment stays,
// even if the window has no length.
func (l *ledger) forget(now int64) { l.ring.forget(now - max(1, l.per)) }

// search returns the earliest time from now on at which permits fit.
//
// It passes over the times once, with two marks: ready, the earliest time that can
// still be the one, and the end of a stretch that holds it. All times in (end-per, end] are
// the stretch; from and to are its indices in the ring.
func (l *ledger) search(now int64, permits int) (ready int64) {
	ready = l.begin(now, permits)
	room := uint64(l.size - permits)
	from, to := l.ring.after(ready-l.per), l.ring.after(ready)
	for {
		// The stretch that ends when the permits would be ready: where it is too
		// full, on to when its oldest leave.
		for l.ring.until(to)-l.ring.until(from) > room {
			ready = add(l.ring.time(from).at, l.per)
			from++
			for to < l.ring.length && l.ring.time(to).at <= ready {
				to++
			}
		}
		// The stretches that end later and hold them: each is fullest when it ends
		// with a time that has been promised.
		for limit := add(ready, l.per); ; {
			if to == l.ring.length || l.ring.time(to).at >= limit {
				return ready
			}
			end := l.ring.time(to).at
			to++
			for l.ring.time(from).at <= end-l.per {
				from++
			}
			if l.ring.until(to)-l.ring.until(from) > room {
				ready = end
				break
			}
		}
	}
}

// begin returns where to begin a search: before that there is nothing.
func (l *ledger) begin(now int64, permits int) int64 {
	begin := now
	for _, s := range l.shut {
		if s.permits <= permits {
			begin = max(begin, s.before)
		}
	}
	return begin
}

// remember keeps what a search has found out, and drops what that tells as well.
func (l *ledger) remember(now int64, found shut) {
	kept := l.shut[:0]
	for _, s := range l.shut {
		if s.before > now && (s.permits < found.permits || s.before > found.before) {
			kept = append(kept, s)
		}
	}
	if len(kept) < maxShut {
		kept = append(kept, found)
	}
	l.shut = kept
}

// maxShut bounds what is kept: so many sizes of requests, in a queue of any length,
// are each found a place without a pass over all of it.
const maxShut = 8
