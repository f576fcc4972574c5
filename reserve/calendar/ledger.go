package calendar

import (
	"math"
	"time"

	"github.com/nextfree/pace/internal/line"
	"github.com/nextfree/pace/internal/saturate"
)

// A ledger holds the present period and what is used of its quota. Times are Unix nanoseconds on the wall clock, unless
// a comment says the limiter's.
type ledger struct {
	line.Line[state]
	*rule
	wall func(now int64) time.Time
	skew int64 // what the server's clock is ahead of the wall clock; Offset includes it

	state    state  // after the requests that were granted
	last     uint64 // the number of the newest request that was granted
	boundary uint64 // of the newest one that was granted before the present period
	undo     pacing // of the state before the newest grant

	out   int64  // permits in use: see use.go
	calls []call // of the present period, if it is FromFirst's: the first few
	ended int64  // when the first of the others has ended; or never
	early early  // of FromFirst: calls that may have opened the server's next period
	said  int64  // the period's end by what a server said

	// over holds requests of the present period beyond its quota, owed what earlier requests took of it.
	over, owed []item
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
	used   int64 // permits; what exceeds the quota is owed to later periods
	beyond int64 // of the excess: not owed, since a larger quota was in force
	at     int64 // when the latest request was granted
	pacing
}

// A pacing says what the latest grant of a period means for the next one.
type pacing struct {
	paced int64 // the next request is not granted before
	from  int64 // as paced from there on,
	paid  int64 // for so many permits; 0: there was no grant
}

var closed = span{math.MinInt64, math.MinInt64}

func (s state) When() int64 { return s.at }

const (
	never  = line.Never
	jitter = int64(5 * time.Millisecond) // between the readings of the two clocks
)

func newLedger(r *rule, now int64, wall func(now int64) time.Time) *ledger {
	t := unix(wall(now))
	l := &ledger{rule: r, wall: wall}
	l.Line = line.Of[state](l)
	l.Now, l.Offset = t, saturate.Add(t, -now)
	l.state = l.open(state{span: closed, at: math.MinInt64, pacing: pacing{paced: math.MinInt64}}, t)
	return l
}

func (l *ledger) Advance(now int64) {
	if step := unix(l.wall(now)) - l.toWall(now) + l.skew; step >= jitter || step <= -jitter {
		l.shift(step)
	}
	t := l.toWall(now)
	if l.out > 0 {
		l.Confirm(t) // the times of waiting requests don't know what is in use since
	}
	l.Due(t) // what came back since the last call counts from then on, so Now is that call's
	l.Now = t
	l.begin(l.open(l.state, l.Now))
}

func (l *ledger) toWall(t int64) int64 { return saturate.Add(t, l.Offset) }

// shift moves promised times on the wall clock, which was set, so that they stay on the limiter's clock.
func (l *ledger) shift(step int64) {
	if l.state.paced > math.MinInt64 {
		l.state.paced, l.state.from = saturate.Add(l.state.paced, step), saturate.Add(l.state.from, step)
	}
	l.Now = saturate.Add(l.Now, step)
	l.Shift(step)
}

func (l *ledger) Present() state { return l.state }

func (l *ledger) Rate() float64 { return l.rate }

func (l *ledger) Left() int64 { return l.quota - (l.state.used - l.state.beyond) }

func (l *ledger) Size() (capacity float64, largest int) { return float64(l.quota), math.MaxInt }

// manySteps is up to where a forecast of paced requests goes one by one.
const manySteps = 1_000_000

// Forecast is too early for FromFirst with a margin, whose periods begin ever later.
func (l *ledger) Forecast(now int64, n int) int64 {
	l.Advance(now)
	s := l.After(l.Last(), 1, never)
	for rest := int64(n) - 1; rest > 0; {
		k, left := rest, l.quota-s.used
		switch paced := !math.IsInf(l.spread, 1); {
		case paced && left <= 0 && rest > l.quota:
			k = (rest - 1) / l.quota * l.quota // they fill periods
			s = l.After(s, k, never)
			rest -= k
			continue
		case paced:
			k = 1 + min(rest, max(0, left))/manySteps // the pace depends on what is left
		case left > 0:
			k = min(rest, left) // they fill the period
		}
		if k > 1 {
			s = l.After(s, k-1, never)
		}
		s = l.After(s, 1, never)
		rest -= k
	}
	return l.ToLimiter(s.at)
}

func (l *ledger) TakeUpTo(now int64, n int) (taken int) {
	if !math.IsInf(l.spread, 1) { // the next one is not granted at once
		for taken < n && l.Take(now, 1) {
			taken++
		}
		return taken
	}
	return l.Line.TakeUpTo(now, n)
}

// Pause lets the periods go on.
func (l *ledger) Pause(now, until int64) bool {
	l.Advance(now)
	if until <= max(now, l.Stopped) {
		return false
	}
	l.Stopped = until
	l.Release() // or requests promised in several periods would come in one
	return true
}

func (l *ledger) Stop(now, until int64) bool { return l.Pause(now, until) }

func (l *ledger) Paused() int64 { return l.Stopped }

func (l *ledger) Resume(now int64) bool {
	if l.Stopped <= now {
		return false
	}
	l.Stopped = now
	l.Unplace()
	l.Advance(now)
	return true
}
