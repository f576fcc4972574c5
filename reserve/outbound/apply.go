package outbound

import (
	"cmp"
	"math"
	"time"

	"github.com/nextfree/pace/internal/adapt"
)

// teach tells the limits what follows for them from the response. Stops come before and after it.
func (l *lesson) teach(v *verdict) {
	if v.refused {
		l.throttled(v)
	}
	for i := range l.charges { // from the named limit on: another's rate wakes calls, which may go by this
		l.learn(&l.charges[len(l.charges)-1-i])
	}
	for a := range l.charges.all { // a quota by the calendar follows the server's
		if a.said != nil && a.said.Ends > 0 {
			a.of.Said(a.said.Left, l.of.heard.Add(a.said.Ends))
		}
	}
	if !l.said.Cached {
		l.makeRoom(v)
	}
}

// accepted tells the limits that the server has accepted the call.
func (l *lesson) accepted() {
	for _, s := range *l.states {
		s.accepted.Store(l.of.heard.UnixNano())
		s.emptied.Store(0)
	}
	l.unblock()
	for a := range l.of.way.charges.all {
		l.of.t.believes(a, func(told *adapt.Told) { told.Accepted(l.of.heard, l.of.sent, float64(a.Permits)) })
	}
}

// stops applies the stops that include what the limits owe, or the others, and doubts refused limits that are told.
func (l *lesson) stops(v *verdict, owed bool) {
	for a := range l.charges.all {
		if a.ruling.owed != owed {
			continue
		}
		wait := a.ruling.stop
		if a.ruling.blamed {
			doubted := l.charges.doubtful(a, l.said.Reason)
			if l.doubt(doubted, a, v.stop); doubted != a && wait > 0 && doubted.stopsWith(a) {
				doubted.stop(l.of.heard.Add(wait)) // nothing is saved up meanwhile
			}
		}
		if owed {
			wait -= a.owes()
		}
		if wait > 0 {
			a.stop(l.of.heard.Add(wait))
			l.of.t.learned.stopAll(a, l.of.heard.Add(wait))
		}
	}
}

// owes returns how long the limit has no permits for what it has granted; 0 if it can't tell.
func (a *charge) owes() time.Duration {
	if o, known := a.of.Outlook(); known && !a.of.Traits().Silent {
		return o.Wait
	}
	return 0
}

func (l *lesson) throttled(v *verdict) {
	var limits []string
	if l.tries.crowded {
		limits = append(limits, l.said.Reason)
	} else if len(l.of.way.charges) == 0 || l.said.NotRate {
		limits = append(limits, "")
	}
	for a := range l.charges.all {
		if a.ruling.blamed {
			a.state.refused.Add(1)
			limits = append(limits, a.name())
		}
	}
	if hook := l.of.t.hooks.Throttled; hook != nil {
		for _, limit := range limits {
			hook(l.of.response, limit, v.after)
		}
	}
}

func (l *lesson) learn(a *charge) {
	if a.rate == nil || a.toldWindow() {
		return
	}
	from, to := a.rate.change(func(rate *adapt.Rate) {
		l.hear(rate, a)
		switch a.ruling.outcome {
		case refused:
			rate.Refused(l.of.heard, l.of.sent, l.of.heard.Add(a.ruling.pause), l.of.response.StatusCode >= 500)
		case short:
			rate.Short(l.of.heard, l.of.sent, float64(a.Permits))
		case accepted:
			rate.Accepted(l.of.heard, l.of.sent, float64(a.Permits))
		}
	})
	if hook := l.of.t.hooks.RateChanged; hook != nil && from != to {
		hook(l.of.request, a.name(), from, to)
	}
}

// toldWindow reports whether headers tell the window of a limit whose rate nobody has asked for: its room is enough.
func (a *charge) toldWindow() bool {
	return !a.rate.asked && (a.state.room.Load() != nil || a.said != nil && a.said.Ends > 0)
}

// hear tells a rate what the response says is left and allowed, in calls or in permits.
func (l *lesson) hear(rate *adapt.Rate, a *charge) {
	s, cost := a.said, 1.
	if s == nil {
		return
	}
	if a.saidInCalls() {
		cost = rate.Cost()
	}
	rest := s.Ends
	if s.Bucket {
		rest = 0
	} else if s.Left >= 0 {
		rate.Left(l.of.sent, s.Left*cost)
	}
	if s.Rate > 0 && !a.tooLittle {
		rate.Said(l.of.heard, l.of.sent, s.Rate*cost, rest, s.Spread)
	}
}

// leftFor returns how many calls of this cost the response says are left.
func (a *charge) leftFor(took time.Duration) int {
	l := a.said
	if l == nil || l.Left < 0 || a.limit.exact {
		return boundless
	}
	left := l.Left / float64(max(1, a.Permits))
	if l.Bucket {
		left += l.Rate * took.Seconds() // refilled meanwhile
	}
	if left >= math.MaxInt32 {
		return boundless
	}
	return int(left)
}

func (l *lesson) makeRoom(v *verdict) {
	for a := range l.charges.all {
		stop := a.ruling.stop
		room := a.roomOf()
		switch {
		case room == nil:
		case !v.refused:
			room.accepted(l.of.sent, l.of.heard, a.leftFor(l.of.heard.Sub(l.of.sent)))
		case l.said.NotRate:
			room.refused(l.of.sent, l.of.heard, firstBackoff, true)
		case !a.ruling.blamed || l.tries.block > 0 || a.rate != nil && !a.toldWindow(): // one goes at a time, or by the rate
		case stop > 0 || l.of.response.StatusCode < 500 && !l.of.t.pauseRefused:
			room.refused(l.of.sent, l.of.heard, cmp.Or(stop, firstBackoff), stop == 0)
		}
	}
}
