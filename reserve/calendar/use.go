package calendar

import (
	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/smooth"
)

// inUse marks slots in use. A server may count a call at the edge of a period in either, so both count it.
const inUse = 1 << 63

// Begin counts a call that was granted in an earlier period in this one.
func (l *ledger) Begin(now int64, slot smooth.Slot) smooth.Slot {
	if slot.Number >= inUse || l.Waits(now, slot.Number) {
		return slot
	}
	if slot.Number <= l.boundary && l.state.span != closed {
		l.state.used = saturate.Add(l.state.used, int64(slot.Permits))
		l.Release()
	}
	l.out += int64(slot.Permits)
	slot.Number |= inUse
	return slot
}

// End: the first call that ends in a period of FromFirst sets its end.
func (l *ledger) End(now int64, slot smooth.Slot) smooth.Slot {
	l.Advance(now)
	if slot.Number < inUse {
		return slot
	}
	slot.Number &^= inUse
	l.out -= int64(slot.Permits)
	if l.period.kind == fromFirst {
		l.ended(slot)
	}
	l.Unplace() // a period to come begins with less
	return slot
}

// ended learns from a call's end by when the server's period has begun.
func (l *ledger) ended(slot smooth.Slot) {
	own := slot.Number > l.boundary
	if l.Now >= l.untilAtLeast(l.state) || !own && l.unsure {
		l.early.permits += int64(slot.Permits)
		l.early.until = l.fullFromNow()
	}
	if own && l.unsure && l.state.end != l.said {
		l.state.end, l.opener, l.unsure = l.fullFromNow(), slot.Number, false
	}
}

// gone forgets what the end of a call has told that was not sent.
func (l *ledger) gone(number uint64) {
	if l.period.kind == fromFirst && number == l.opener && l.state.end != l.said {
		l.state.end, l.unsure = max(l.state.end, l.fullFromNow()), true
	}
}

func (l *ledger) fullFromNow() int64 { return saturate.Add(l.Now, int64(l.period.length)) }

// A server opens a period of FromFirst when its first call arrives, between its sending and its answer, so its end
// is as uncertain. Then nothing is granted, and a call that is out counts in the next period, which it may have opened.

type early struct {
	permits int64 // of calls that were out when the server's period may have ended
	from    int64 // when the server's next period began, at the earliest
	until   int64 // when it has ended, at the latest
}

// untilAtLeast returns when the server's period ends at the earliest.
func (l *ledger) untilAtLeast(s state) int64 {
	if l.period.kind == fromFirst && s.end != l.said {
		return min(s.end, saturate.Add(s.begin, int64(l.period.length)))
	}
	return s.end
}

// opened returns the state of a period of FromFirst whose first request is granted at a time.
func (l *ledger) opened(t int64) state {
	s := state{span: span{t, saturate.Add(t, int64(l.period.length))}, pacing: pacing{paced: t}}
	if t == l.Now {
		s.used = l.out
	}
	if t < l.early.until {
		s.used += l.early.permits
	}
	if s.used > 0 && saturate.Add(l.early.from, int64(l.period.length)) > t {
		s.begin = min(t, l.early.from)
	}
	return s
}
