package leases

import (
	"math"
	"slices"

	"github.com/nextfree/pace/internal/saturate"
)

// A schedule says when the permits of all lots are ready. It is a clock that counts them, in ticks, and stands still
// while the store's time belongs to other processes.
type schedule struct {
	upfront   bool
	intervals []interval // under way and to come: in order, none overlaps another
	passed    int64      // the ticks of intervals that are over
	last      int64      // what the clock showed last
}

// An interval makes ticks of permits ready, evenly from its begin to its end.
type interval struct{ begin, end, ticks int64 }

// tick is how many ticks of the clock a permit takes. One tick is too small for a caller to notice, and the clock can
// count 9e15 permits.
const tick = 1 << 10

// uncovered is the time of ticks that are not in the schedule: permits that have to be bought first.
const uncovered = saturate.Never

// show returns what the clock shows now.
func (s *schedule) show(now int64) int64 {
	s.last = max(s.last, s.clock(now))
	return s.last
}

// forget drops the intervals that are over.
func (s *schedule) forget(now int64) {
	for len(s.intervals) > 0 && s.intervals[0].end <= now {
		s.passed += s.intervals[0].ticks
		s.intervals = slices.Delete(s.intervals, 0, 1)
	}
}

// clock returns what the clock shows at a time. Where a request pays later, it is granted when its first permit is
// ready. That of the next interval is not ready before that begins, so at the end of an interval the clock stops a
// tick short.
func (s *schedule) clock(at int64) int64 {
	ticks, between := s.passed, true
	for _, i := range s.intervals {
		if at < i.begin {
			break
		}
		if at < i.end {
			ticks += int64(float64(i.ticks) * (float64(at-i.begin) / float64(i.end-i.begin)))
			between = false
			break
		}
		ticks += i.ticks
	}
	if between && !s.upfront {
		ticks--
	}
	return ticks
}

// at returns when the clock shows so many ticks; now, if it does already.
func (s *schedule) at(now, ticks int64) int64 {
	if ticks <= s.last {
		return now
	}
	before := s.passed
	for _, i := range s.intervals {
		if rest := ticks - before; rest < i.ticks || s.upfront && rest == i.ticks {
			return max(now, i.begin+int64(math.Ceil(float64(i.end-i.begin)*(float64(rest)/float64(i.ticks)))))
		}
		before += i.ticks
	}
	return uncovered
}

// end returns when the last interval ends, and how long a permit takes in it. Without one it returns false.
func (s *schedule) end() (at int64, pace float64, ok bool) {
	n := len(s.intervals)
	if n == 0 {
		return 0, 0, false
	}
	last := s.intervals[n-1]
	return last.end, float64(last.end-last.begin) / float64(last.ticks) * tick, true
}

// insert adds an interval behind the ones that begin before it, so that none overlaps. One that takes no time may lie
// in another.
func (s *schedule) insert(n interval) {
	if n.ticks == 0 {
		return
	}
	i := 0
	for i < len(s.intervals) && s.intervals[i].begin <= n.begin {
		i++
	}
	if i > 0 && n.begin < s.intervals[i-1].end {
		before := &s.intervals[i-1]
		if n.begin < n.end {
			n.end += before.end - n.begin
			n.begin = before.end
		} else {
			ticks := int64(float64(before.ticks) * (float64(n.begin-before.begin) / float64(before.end-before.begin)))
			rest := interval{n.begin, before.end, before.ticks - ticks}
			before.end, before.ticks = n.begin, ticks
			s.intervals = slices.Insert(s.intervals, i, rest)
		}
	}
	s.intervals = slices.Insert(s.intervals, i, n)
	for i++; i < len(s.intervals); i++ {
		if late := s.intervals[i-1].end - s.intervals[i].begin; late > 0 {
			s.intervals[i].begin += late
			s.intervals[i].end += late
		}
	}
}

// cut takes ticks off the end.
func (s *schedule) cut(ticks int64) {
	for ticks > 0 {
		i := len(s.intervals) - 1
		last := &s.intervals[i]
		if last.ticks > ticks {
			rest := last.ticks - ticks
			last.end = last.begin + int64(float64(last.end-last.begin)*(float64(rest)/float64(last.ticks)))
			last.ticks = rest
			break
		}
		ticks -= last.ticks
		s.intervals = s.intervals[:i]
	}
}
