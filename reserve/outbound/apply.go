package outbound

import (
	"cmp"
	"math"
	"time"

	"github.com/nextfree/pace/internal/adapt"
)

// teach tells the limits what follows for them from the response. Stops come before and after it.
func (l *lesson) teach(v *verdict, rulings []ruling) {
	if v.refused {
		l.throttled(v, rulings)
	}
	for i := len(l.charges) - 1; i >= 0; i-- { // from the named limit on: another's rate wakes calls, which may go by this
		l.learn(&l.charges[i], &rulings[i])
	}
	for i := range l.charges {
		l.tell(&l.charges[i])
	}
	if !l.said.Cached {
		l.makeRoom(v, rulings)
	}
}

// accepted tells the limits that the server has accepted the call.
func (l *lesson) accepted() {
	for _, s := range *l.states {
		s.accepted.Store(l.of.heard.UnixNano())
		s.emptied.Store(0)
	}
	l.unblock()
	for i := range l.of.way.charges {
		a := &l.of.way.charges[i]
		l.of.t.believes(a, func(told *adapt.Told) { told.Accepted(l.of.heard, l.of.sent, float64(a.Permits)) })
	}
}

// stops applies the stops that include what the limits owe, or the others, and doubts refused limits that are told.
func (l *lesson) stops(v *verdict, rulings []ruling, owed bool) {
	for i := range l.charges {
		a, ruling := &l.charges[i], &rulings[i]
		if ruling.owed != owed {
			continue
		}
		if ruling.blamed {
			doubted := doubtful(l.charges, i, l.said.Reason)
			if l.doubt(doubted, a, v.stop); doubted != a && ruling.stop > 0 && doubted.stopsWith(a) {
				doubted.stop(l.of.heard.Add(ruling.stop)) // nothing is saved up meanwhile
			}
		}
		wait := ruling.stop
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

func (l *lesson) throttled(v *verdict, rulings []ruling) {
	var limits []string
	if len(l.of.way.charges) == 0 || l.tries.crowded != "" || l.said.NotRate {
		limits = append(limits, l.tries.crowded)
	}
	for i := range l.charges {
		if rulings[i].blamed {
			l.charges[i].state.refused.Add(1)
			limits = append(limits, l.charges[i].name())
		}
	}
	if hook := l.of.t.hooks.Throttled; hook != nil {
		for _, limit := range limits {
			hook(l.of.response, limit, v.after)
		}
	}
}

// tell tells a calendar's quota what is left of the server's, and until when.
func (l *lesson) tell(a *charge) {
	if a.said != nil && a.said.Ends > 0 {
		a.of.Said(a.said.Left, l.of.heard.Add(a.said.Ends))
	}
}

func (l *lesson) learn(a *charge, r *ruling) {
	if a.rate == nil || a.toldWindow() {
		return
	}
	from, to := a.rate.change(func(rate *adapt.Rate) {
		l.hear(rate, a, r)
		switch r.outcome {
		case refused:
			rate.Refused(l.of.heard, l.of.sent, l.of.heard.Add(r.pause), l.of.response.StatusCode >= 500)
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
func (l *lesson) hear(rate *adapt.Rate, a *charge, r *ruling) {
	if s := a.said; s != nil && !s.Bucket && s.Left >= 0 {
		left := s.Left
		if a.saidInCalls() {
			left *= rate.Cost()
		}
		rate.Left(l.of.sent, left)
	}
	if allowed := r.rate; allowed > 0 {
		if r.each {
			allowed *= rate.Cost()
		}
		rest := a.said.Ends
		if a.said.Bucket {
			rest = 0
		}
		rate.Said(l.of.heard, l.of.sent, allowed, rest, a.said.Spread)
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

func (l *lesson) makeRoom(v *verdict, rulings []ruling) {
	for i := range l.charges {
		a, ruling := &l.charges[i], &rulings[i]
		if a.room == nil {
			a.room = a.roomOf()
		}
		switch {
		case a.room == nil:
		case !v.refused:
			a.room.accepted(l.of.sent, l.of.heard, a.leftFor(l.of.heard.Sub(l.of.sent)))
		case l.said.NotRate:
			a.room.refused(l.of.sent, l.of.heard, firstBackoff, true)
		case !ruling.blamed || l.tries.block > 0 || a.rate != nil && !a.toldWindow(): // one goes at a time, or by the rate
		case ruling.stop > 0 || l.of.response.StatusCode < 500 && !l.of.t.pauseRefused:
			a.room.refused(l.of.sent, l.of.heard, cmp.Or(ruling.stop, firstBackoff), ruling.stop == 0)
		}
	}
}
