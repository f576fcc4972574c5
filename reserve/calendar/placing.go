package calendar

import (
	"math"

	"github.com/nextfree/pace/internal/line"
	"github.com/nextfree/pace/internal/saturate"
)

// open returns the state at a time, of this period or a later one.
func (l *ledger) open(s state, t int64) state {
	for t >= s.end && s.end != never {
		over, out := l.owes(s), int64(0)
		if s.span == l.state.span { // only the next period counts what is in use now
			out = l.out
		}
		n, ended := int64(0), s.end
		if over > 0 { // pass over periods that are used up
			n = l.period.passed(ended, t, over/l.quota)
			over, ended = over-n*l.quota, l.period.nth(ended, n)
		}
		switch {
		case over <= 0 && l.period.kind == fromFirst:
			if s.end != closed.end {
				s = state{span: closed, at: s.at, pacing: pacing{paced: saturate.Add(ended, l.margin)}}
			}
			return s
		case over <= 0 && n == 0:
			s.used, s.span = out, l.period.around(t)
		default:
			s.used, s.begin, s.end = over+out, ended, l.period.nth(ended, 1)
		}
		s.pacing = pacing{paced: saturate.Add(s.begin, l.margin)}
		s.beyond = max(0, min(s.beyond, out-l.quota)) // only what is in use counts in this period
	}
	return s
}

// owes returns the permits that later periods owe, if positive.
func (l *ledger) owes(s state) int64 { return s.used - l.quota - s.beyond }

func (l *ledger) After(s state, permits, latest int64) state {
	t := max(s.at, l.Now)
	if l.Len() == 0 {
		t = l.Now // the latest grant is later than now if the wall clock was set back
	}
	if latest != line.Asap {
		t = max(t, l.toWall(l.Stopped))
	}
	for {
		if s = l.open(s, t); s.end == closed.end {
			t = max(t, min(s.paced, latest))
			s = l.opened(t)
		}
		last, left := l.untilAtLeast(s)-l.margin, l.quota-s.used
		at := max(t, s.paced)
		if (permits > left && s.used > 0) || at >= last {
			at = s.end
		}
		if at < s.end || at > latest || at == never {
			s.at = max(t, min(at, latest))
			s.used = saturate.Add(s.used, permits)
			s.from, s.paid = max(s.at, s.paced), permits // a charge goes before that, and moves it on
			s.paced = l.pace(s.from, last, permits, left)
			return s
		}
		usedUp := l.period.nth(s.end, max(0, l.owes(s)/l.quota))
		t = max(s.end, min(usedUp, latest))
	}
}

// pace returns when the next request may be granted after one for permits at t, if left permits were left until last.
func (l *ledger) pace(t, last, permits, left int64) int64 {
	switch {
	case math.IsInf(l.spread, 1):
		return t
	case permits >= left || t >= last:
		return last
	default:
		return t + int64(math.Ceil(float64(permits)*(float64(last-t)/(float64(left)*l.spread))))
	}
}

// repaced returns when the next request may be granted if the present rule was in force at the latest grant, too.
func (l *ledger) repaced(s state) int64 {
	switch {
	case s.paid > 0:
		return l.pace(s.from, l.untilAtLeast(s)-l.margin, s.paid, l.quota-(s.used-s.paid))
	case s.end == closed.end || l.period.kind == fromFirst:
		return min(s.paced, l.Now)
	default:
		return saturate.Add(s.begin, l.margin)
	}
}

func (l *ledger) Grant(number uint64, permits int64, after state) {
	l.begin(l.open(l.state, after.at))
	if after.begin != l.state.begin { // a period that opens with this request
		l.begin(state{span: after.span, pacing: l.state.pacing})
		l.calls, l.ended, l.early.permits = l.calls[:0], never, 0
	}
	if l.period.kind == fromFirst && len(l.calls) < fewCalls {
		l.calls = append(l.calls, call{number, after.at, after.at})
	}
	l.undo, l.state, l.last = l.state.pacing, after, number
	if after.used > l.quota {
		l.over = append(l.over, item{number, permits})
	}
}

func (l *ledger) begin(next state) {
	if next.span != l.state.span {
		// The last requests that went over earlier quotas took what is used already.
		items, rest := append(l.owed, l.over...), next.used
		i := len(items)
		for ; i > 0 && rest > 0; i-- {
			items[i-1].permits = min(items[i-1].permits, rest)
			rest -= items[i-1].permits
		}
		l.owed, l.over = append([]item(nil), items[i:]...), nil
		l.boundary = l.last
		if l.state.span != closed {
			l.early.from = saturate.Add(l.state.begin, int64(l.period.length))
		}
	}
	l.state = next
}

// place computes the first unknown state.
