package calendar

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/saturate"
	"github.com/nextfree/pace/smooth"
)

// A ledger holds the present period, what is used of its quota, and the waiting requests. Times are Unix nanoseconds on
// the wall clock, unless a comment says the limiter's.
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

	out    int64  // permits in use: see use.go
	opener uint64 // the number of the request that opened the present period
	said   int64  // the period's end by what a server said

	// over holds requests of the present period beyond its quota, owed what earlier requests took of it.
	over, owed []item

	queue []request
	known int // the states of so many in queue are known
	empty int // so many in queue have no permits left
}

// A rule is immutable.
type rule struct {
	rate   float64 // permits per second, by the period's nominal length
	quota  int64
	period Period
	spread float64 // at most so many times the even rate; +Inf: no pacing
	margin int64   // nothing is granted so close to a period's beginning or end
}

// A state says how a period stands. A period of FromFirst is closed until its first request.
type state struct {
	span
	used  int64 // permits; what exceeds the quota is used of later periods
	paced int64 // the next request is not granted before
	at    int64 // when the latest request was granted
}

var closed = span{math.MinInt64, math.MinInt64}

// A request waits. Its state is the period's after its grant.
type request struct {
	number  uint64
	permits int64
	latest  int64 // it is granted no later: a time that was promised before a change of the rule
	state
}

const (
	never  = saturate.Never
	asap   = math.MinInt64               // as latest: a charge, which waits only for the requests before it
	keep   = 1024                        // the memory of so many requests is kept when none waits
	jitter = int64(5 * time.Millisecond) // between the readings of the two clocks
)

func newLedger(r *rule, now int64, wall func(now int64) time.Time) *ledger {
	t := unix(wall(now))
	l := &ledger{rule: r, wall: wall, now: t, offset: saturate.Add(t, -now), stopped: math.MinInt64}
	l.state = l.open(state{span: closed, paced: math.MinInt64, at: math.MinInt64}, t)
	return l
}

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

func (l *ledger) Reserve(now int64, permits int, latest int64) (slot smooth.Slot, ready int64, ok bool) {
	l.advance(now)
	after := l.after(l.placed(), int64(permits), never)
	if ready = l.toLimiter(after.at); ready > latest {
		return smooth.Slot{}, ready, false
	}
	return smooth.Slot{Number: l.push(int64(permits), never, after), Permits: permits}, ready, true
}

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

func (l *ledger) Charge(now int64, permits int) {
	l.advance(now)
	l.push(int64(permits), asap, l.after(l.placed(), int64(permits), asap))
}

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

func (l *ledger) Waits(now int64, number uint64) bool {
	l.advance(now)
	i := l.find(number)
	return i < len(l.queue) && l.queue[i].number == number
}

func (l *ledger) Rate() float64 { return l.rate }

func (l *ledger) Stored(now int64) float64 {
	l.advance(now)
	if len(l.queue) > 0 {
		return 0
	}
	return float64(max(0, l.quota-l.state.used))
}

func (l *ledger) Level(now int64) float64 {
	l.advance(now)
	level := float64(l.quota) - float64(l.state.used)
	for i := range l.queue {
		level -= float64(l.queue[i].permits)
	}
	return level
}

func (l *ledger) Size() (capacity float64, largest int) { return float64(l.quota), math.MaxInt }

func (l *ledger) NextFree(now int64) int64 {
	l.advance(now)
	return l.toLimiter(l.after(l.placed(), 1, never).at)
}

func (l *ledger) Idle(now int64) bool {
	l.advance(now)
	return len(l.queue) == 0 && now >= l.stopped
}
