package calendar

import (
	"slices"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/internal/smooth"
)

// inUse marks slots in use: a server may count a call at the edge of a period in either, so both count it.
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
	if c := l.called(slot.Number); c != nil {
		c.by = never
		l.reckon()
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
		l.answered(slot)
	}
	l.Unplace() // a period to come begins with less
	return slot
}

// A call is a request of a period of FromFirst that was granted at a time, and has reached the server by a later one:
// when it was granted, never while it is in use, and then when it ended.
type call struct {
	number uint64
	at, by int64
}

const fewCalls = 64

func (l *ledger) called(number uint64) *call {
	for i := range l.calls {
		if l.calls[i].number == number {
			return &l.calls[i]
		}
	}
	return nil
}

// began returns when the server's period began, at the earliest and at the latest; never: no call has ended.
func (l *ledger) began() (from, by int64) {
	from, by = never, l.ended
	for _, c := range l.calls {
		from, by = min(from, c.at), min(by, c.by)
	}
	return from, by
}

func (l *ledger) reckon() {
	from, by := l.began()
	if len(l.calls) == 0 || l.state.end == l.said {
		return
	}
	if by == never {
		by = from
	}
	if end := saturate.Add(by, int64(l.period.length)); end != l.state.end {
		l.state.end = end
		l.Unplace()
	}
}

// answered learns from a call's end by when the server's period has begun.
func (l *ledger) answered(slot smooth.Slot) {
	own := slot.Number > l.boundary
	if _, by := l.began(); l.Now >= l.untilAtLeast(l.state) || !own && by == never {
		l.early.permits += int64(slot.Permits)
		l.early.until = l.fullFromNow()
	}
	if !own {
		return
	}
	if c := l.called(slot.Number); c != nil {
		c.by = l.Now
	} else {
		l.ended = min(l.ended, l.Now)
	}
	l.reckon()
}

func (l *ledger) gone(number uint64) {
	c := l.called(number)
	if c == nil {
		return
	}
	at := c.at
	l.calls = slices.DeleteFunc(l.calls, func(c call) bool { return c.number == number })
	if from, _ := l.began(); l.state.begin == at && from < never {
		l.state.begin = from
	}
	l.reckon()
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
