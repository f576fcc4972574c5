package calendar

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/smooth"
)

// A ledger knows the present period, how much of its quota is used, and the requests that wait, in the
// order in which they were made. The rule is:
//
//	first come, first served; the first in the queue is granted as soon as what is left of the
//	period's quota holds all of its permits.
//
// So a request that does not fit into this period is granted at the beginning of the next. One larger
// than the quota is granted at the beginning of a period of which nothing is used, and takes the quota
// of as many periods as it needs.
//
// All times in here are those of the wall clock, in nanoseconds of Unix time, unless a comment says
// that they are the limiter's.
type ledger struct {
	*rule
	wall    func(now int64) time.Time
	offset  int64 // wall clock less the limiter's
	skew    int64 // what the server's clock is ahead of the wall clock; offset includes it
	now     int64
	stopped int64 // no request is granted before; the limiter's time

	state    state  // after the requests that were granted
	newest   uint64 // the number of the newest request
	last     uint64 // of the newest one that was granted
	boundary uint64 // of the newest one that was granted before the present period
	undo     int64  // state.paced as it was before the newest grant

	// over holds the requests of the present period that went over its quota, and owed what requests of
	// earlier periods have taken of this one. What else was granted in earlier periods is gone with them.
	over, owed []item

	queue []request
	known int // the states of so many in queue are known
	empty int // so many in queue have no permits left
}

// A rule is what a policy says. It is immutable.
type rule struct {
	rate   float64 // permits per second, by the period's nominal length
	quota  int64
	period Period
	spread float64 // at most so many times the even rate; +Inf: no pacing
	margin int64   // nothing is granted so close to a period's beginning or end
}

// A state says how a period stands. A period that opens with its first request is closed until then:
// its end is the least int64.
type state struct {
	span
	used  int64 // permits; what exceeds the quota is used of the periods after this one
	paced int64 // the next request is not granted before
	at    int64 // when the latest request was granted
}

var closed = span{math.MinInt64, math.MinInt64}

// A request waits. Its state is the period's after it.
type request struct {
	number  uint64
	permits int64
	latest  int64 // it is granted no later: a time that was promised before a change of the rule
	state
}

const (
	never = math.MaxInt64
	asap  = math.MinInt64 // as latest: a charge, which waits for nothing but those before it
	keep  = 1024          // the memory of so many requests is kept when none waits
	// A step of the wall clock that is smaller is none: the two clocks are not read in one moment.
	jitter = int64(5 * time.Millisecond)
)

// An item is a request's number, and a number of its permits.
type item struct {
	number  uint64
	permits int64
}

func newLedger(r *rule, now int64, wall func(now int64) time.Time) *ledger {
	t := unix(wall(now))
	l := &ledger{rule: r, wall: wall, now: t, offset: saturate.Add(t, -now), stopped: math.MinInt64}
	l.state = l.open(state{span: closed, paced: math.MinInt64, at: math.MinInt64}, t)
	return l
}

// open returns the state that a period's has become at a time: its own, or that of a later period.
func (l *ledger) open(s state, t int64) state {
	for t >= s.end && s.end != never {
		over := s.used - l.quota
		switch ended := s.end; {
		case over <= 0 && l.period.kind == fromFirst:
			if s.end != closed.end {
				s = state{span: closed, paced: saturate.Add(s.end, l.margin), at: s.at}
			}
			return s
		case over <= 0:
			s.used, s.span = 0, l.period.around(t)
		case l.period.kind >= every: // pass over periods that are used up
			n := min(over/l.quota, (t-ended)/int64(l.period.length))
			s.used, s.begin = over-n*l.quota, ended+n*int64(l.period.length)
			s.end = saturate.Add(s.begin, int64(l.period.length))
		default:
			s.used, s.span = over, l.period.around(ended)
		}
		s.paced = saturate.Add(s.begin, l.margin)
	}
	return s
}

// after returns the state after a request that comes behind those that led to s.
func (l *ledger) after(s state, permits, latest int64) state {
	t := max(s.at, l.now)
	if len(l.queue) == 0 {
		t = l.now // the latest grant is later than now if the wall clock was set back
	}
	if latest != asap {
		t = max(t, l.toWall(l.stopped))
	}
	for {
		s = l.open(s, t)
		if s.end == closed.end {
			t = max(t, min(s.paced, latest))
			s = state{span: span{t, saturate.Add(t, int64(l.period.length))}, paced: t}
		}
		last, left := s.end-l.margin, l.quota-s.used
		at := max(t, s.paced)
		if (permits > left && s.used > 0) || at >= last {
			at = s.end
		}
		if at < s.end || at > latest || at == never {
			s.at = max(t, min(at, latest))
			s.used = saturate.Add(s.used, permits)
			s.paced = l.pace(s.at, last, permits, left)
			return s
		}
		t = s.end
		if n := (s.used - l.quota) / l.quota; n > 0 && l.period.kind >= every { // pass over periods that are used up
			last := int64(never)
			if length := int64(l.period.length); n < (never-s.end)/length {
				last = s.end + n*length
			}
			t = max(s.end, min(last, latest))
		}
	}
}

// pace returns when the next request may be granted, after one at t for so many of the permits that
// were left for the time up to last.
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

// advance reads the wall clock, and grants the requests whose time has come.
func (l *ledger) advance(now int64) {
	if step := unix(l.wall(now)) - saturate.Add(now, l.offset) + l.skew; step >= jitter || step <= -jitter {
		l.shift(step)
	}
	l.now = l.toWall(now)
	n := 0
	for ; n < len(l.queue); n++ {
		if l.known == n {
			l.place()
		}
		if r := &l.queue[n]; r.permits == 0 {
			l.empty--
		} else if r.at > l.now {
			break
		} else {
			l.grant(r.number, r.permits, r.state)
		}
	}
	if n > 0 {
		l.known -= n
		l.queue = append(l.queue[:0], l.queue[n:]...)
		if len(l.queue) == 0 && cap(l.queue) > keep {
			l.queue = nil
		}
	}
	l.begin(l.open(l.state, l.now))
}

// shift moves all promised times on the wall clock, which was set, so that on the limiter's clock they stay; the
// periods are the wall clock's.
func (l *ledger) shift(step int64) {
	l.offset += step
	if l.state.paced > math.MinInt64 {
		l.state.paced = saturate.Add(l.state.paced, step)
	}
	for i := range l.queue {
		if r := &l.queue[i]; r.latest != asap && r.latest != never {
			r.latest = saturate.Add(r.latest, step)
		}
	}
	l.known = 0
}

// toWall and toLimiter turn a limiter's time into the wall clock's, and back.
func (l *ledger) toWall(t int64) int64 { return saturate.Add(t, l.offset) }
func (l *ledger) toLimiter(t int64) int64 {
	if t == never {
		return never
	}
	return saturate.Add(t, -l.offset)
}

// grant makes the state after a request the present one.
func (l *ledger) grant(number uint64, permits int64, after state) {
	l.begin(l.open(l.state, after.at))
	if after.begin != l.state.begin { // a period that opens with this request
		l.begin(state{span: after.span, paced: l.state.paced})
	}
	l.undo, l.state, l.last = l.state.paced, after, number
	if after.used > l.quota {
		l.over = append(l.over, item{number, permits})
	}
}

// begin has a period begin, unless it is the present one.
func (l *ledger) begin(next state) {
	if next.span != l.state.span {
		// What is used of it already, the last ones took that went over the quotas before.
		items, rest := append(l.owed, l.over...), next.used
		i := len(items)
		for ; i > 0 && rest > 0; i-- {
			items[i-1].permits = min(items[i-1].permits, rest)
			rest -= items[i-1].permits
		}
		l.owed, l.over = append([]item(nil), items[i:]...), nil
		l.boundary = l.last
	}
	l.state = next
}

// place works out the state after the first request whose state is not known.
func (l *ledger) place() {
	r := &l.queue[l.known]
	before := l.frontier()
	if r.state = before; r.permits > 0 {
		r.state = l.after(before, r.permits, r.latest)
	}
	l.known++
}

// frontier returns the state after the requests whose states are known.
func (l *ledger) frontier() state {
	if l.known == 0 {
		return l.state
	}
	return l.queue[l.known-1].state
}

// placed returns the state after all requests.
func (l *ledger) placed() state {
	for l.known < len(l.queue) {
		l.place()
	}
	return l.frontier()
}

// push appends a request, and grants it if its time has come.
func (l *ledger) push(permits int64, latest int64, after state) (number uint64) {
	l.newest++
	if len(l.queue) == 0 && after.at <= l.now {
		l.grant(l.newest, permits, after)
	} else {
		l.queue = append(l.queue, request{number: l.newest, permits: permits, latest: latest, state: after})
		l.known = len(l.queue)
	}
	return l.newest
}

// Reserve promises permits, behind all that wait.
func (l *ledger) Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool) {
	l.advance(now)
	after := l.after(l.placed(), int64(permits), never)
	if ready = l.toLimiter(after.at); ready > latest {
		return smooth.Slot{}, ready, false
	}
	return smooth.Slot{Number: l.push(int64(permits), never, after), Permits: permits}, ready, true
}

// Take takes permits if nobody waits and they fit now.
func (l *ledger) Take(now int64, permits int) bool {
	l.advance(now)
	if len(l.queue) > 0 {
		return false
	}
	after := l.after(l.state, int64(permits), never)
	if after.at > l.now {
		return false
	}
	l.push(int64(permits), never, after)
	return true
}

// Charge takes permits that were used already, behind all that wait, whether the quota holds them or not.
func (l *ledger) Charge(now int64, permits int) {
	l.advance(now)
	l.push(int64(permits), asap, l.after(l.placed(), int64(permits), asap))
}

// Return takes permits back: of a request that waits, and of one that was granted in this period or
// has taken a part of it. Requests that wait move up.
func (l *ledger) Return(now int64, slot smooth.Slot, kept int) {
	l.advance(now)
	back := int64(slot.Permits - kept)
	if len(l.queue) > 0 && slot.Number >= l.queue[0].number {
		l.leave(l.find(slot.Number), back)
		l.advance(now) // at this time, whenever the next call is
		return
	}
	of := find(l.over, slot.Number)
	if slot.Number <= l.boundary {
		if of = find(l.owed, slot.Number); of == nil {
			return // its period is over
		}
		back = min(back, of.permits)
	}
	if of != nil {
		of.permits -= back
	}
	l.state.used = max(0, l.state.used-back)
	switch {
	case l.state.used == 0 && l.period.kind == fromFirst: // it was not opened
		l.state = state{span: closed, paced: l.state.begin, at: l.state.at}
	case slot.Number == l.last && kept == 0:
		l.state.paced = l.undo
	}
	l.known = 0
	l.advance(now)
}

// leave takes permits off a request that waits.
func (l *ledger) leave(i int, back int64) {
	l.queue[i].permits -= back
	if l.known = min(l.known, i); l.queue[i].permits > 0 {
		return
	}
	l.empty++
	n := len(l.queue)
	for n > 0 && l.queue[n-1].permits == 0 {
		n--
		l.empty--
	}
	if l.queue = l.queue[:n]; 2*l.empty <= n {
		l.known = min(l.known, n)
		return
	}
	waiting := l.queue[:0]
	for _, r := range l.queue {
		if r.permits > 0 {
			waiting = append(waiting, r)
		}
	}
	l.queue, l.empty, l.known = waiting, 0, 0
}

// find returns the index of a request that waits.
func (l *ledger) find(number uint64) int {
	low, high := 0, len(l.queue)-1
	for low < high {
		if mid := int(uint(low+high) >> 1); l.queue[mid].number < number {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// find returns the item of a number, or nil.
func find(items []item, number uint64) *item {
	for i := range items {
		if items[i].number == number {
			return &items[i]
		}
	}
	return nil
}

// Ready returns when a request that waits is granted. When one was granted that does not wait is not known.
func (l *ledger) Ready(now int64, number uint64) (ready int64, known bool) {
	l.advance(now)
	if len(l.queue) == 0 || number < l.queue[0].number || number > l.queue[len(l.queue)-1].number {
		return 0, false
	}
	i := l.find(number)
	if l.queue[i].number != number {
		return 0, false
	}
	for l.known <= i {
		l.place()
	}
	return l.toLimiter(l.queue[i].at), true
}

// Pause lets no request go before a time of the limiter's; the periods go on. Paused returns that time.
func (l *ledger) Pause(now, until int64) bool {
	l.advance(now)
	if until <= max(now, l.stopped) {
		return false
	}
	l.stopped, l.known = until, 0
	return true
}

func (l *ledger) Paused() int64 { return l.stopped }

// Resume ends a pause.
func (l *ledger) Resume(now int64) bool {
	if l.stopped <= now {
		return false
	}
	l.stopped, l.known = now, 0
	l.advance(now)
	return true
}

// Recheck says how often to look at promised times again: the wall clock may have been set, or the machine slept.
func (l *ledger) Recheck() time.Duration { return time.Minute }

// Rate returns the permits per second, by the period's nominal length.
func (l *ledger) Rate() float64 { return l.rate }

// SetRate changes the quota, from now on. Requests that wait are granted no later than they were promised.
func (l *ledger) SetRate(now int64, permitsPerSecond float64) {
	changed := *l.rule
	changed.rate, changed.quota = permitsPerSecond, quotaOf(permitsPerSecond, l.period)
	l.change(now, &changed)
}

// Retime changes the quota, for requests that wait as well.
func (l *ledger) Retime(now int64, permitsPerSecond float64) {
	l.SetRate(now, permitsPerSecond)
	for i := range l.queue {
		if r := &l.queue[i]; r.latest != asap {
			r.latest = never
		}
	}
	l.known = 0
	l.advance(now)
}

// change puts another rule in place. What is used of this period is used of the one that the new rule has at
// this time.
func (l *ledger) change(now int64, r *rule) {
	l.advance(now)
	l.placed()
	for i := range l.queue {
		if q := &l.queue[i]; q.latest != asap {
			q.latest = min(q.latest, q.at)
		}
	}
	if r.period != l.period {
		switch {
		case r.period.kind != fromFirst:
			l.state.span = r.period.around(l.now)
		case l.state.end != closed.end:
			l.state.end = max(saturate.Add(l.state.begin, int64(r.period.length)), l.now+1)
		}
		l.state.paced = min(l.state.paced, l.now)
	}
	if used := l.state.used; used > r.quota { // within the old quota nothing is owed for it
		l.state.used = r.quota + max(0, used-max(l.quota, r.quota))
	}
	l.rule, l.known = r, 0
	l.advance(now)
}

// Said corrects the ledger by what a server says: so many permits are left, until a time of the
// limiter's. Less than the ledger's own count is believed, more is not: calls may be on their way. A period that
// opens with its first request ends when the server says; for the others the difference
// is that of the two clocks, if it is less than half a period.
func (l *ledger) Said(now int64, left float64, reset int64) {
	l.advance(now)
	end := l.toWall(reset)
	if end <= l.now {
		return
	}
	length := int64(l.period.nominal())
	switch by := l.state.end - end; {
	case l.period.kind == fromFirst:
		if l.state.end == closed.end {
			l.state = state{span: span{begin: l.now}, paced: l.now, at: l.state.at}
		}
		l.state.end = min(end, saturate.Add(l.now, length))
	case by >= length/2 || by <= -length/2:
		return // it speaks of another period
	case 0 <= by && by < int64(2*time.Second): // servers round to seconds
	default:
		l.skew += by
		l.shift(by)
		l.now = l.toWall(now)
	}
	if left >= 0 && left < float64(l.quota) {
		l.state.used = max(l.state.used, l.quota-int64(left))
	}
	l.known = 0
	l.advance(now)
}

// Stored returns how many permits are left of the present period's quota; none while requests wait.
func (l *ledger) Stored(now int64) float64 {
	l.advance(now)
	if len(l.queue) > 0 {
		return 0
	}
	return float64(max(0, l.quota-l.state.used))
}

// Level returns how many permits are left, less those that requests wait for.
func (l *ledger) Level(now int64) float64 {
	l.advance(now)
	level := float64(l.quota) - float64(l.state.used)
	for i := range l.queue {
		level -= float64(l.queue[i].permits)
	}
	return level
}

// Capacity returns the quota.
func (l *ledger) Capacity() float64 { return float64(l.quota) }

// NextFree returns when a request for one permit would be granted.
func (l *ledger) NextFree(now int64) int64 {
	l.advance(now)
	return l.toLimiter(l.after(l.placed(), 1, never).at)
}

// Idle reports whether nothing waits, so that only what is used of the period matters.
func (l *ledger) Idle(now int64) bool {
	l.advance(now)
	return len(l.queue) == 0 && now >= l.stopped
}
