package outbound

import (
	"cmp"
	"math"
	"time"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

func (c *call) obey() verdict {
	said := c.read()
	all, rulings := c.concerned(), c.memory.rulings[:]
	if clear(rulings); len(all) > len(rulings) {
		rulings = make([]ruling, len(all))
	}
	rules := c.rules()
	v := rules.decide(&said, all, c.attempt, rulings[:len(all)])
	c.apply(&v, &said)
	return v
}

func (c *call) read() reply.Reply {
	c.heard = c.t.now()
	theirs := c.response.Request
	c.response.Request = c.outgoing // an upstream's, and not its caller's
	s := reply.Read(c.response, c.heard, c.dialects())
	c.response.Request = theirs
	c.listen(&s)
	for i := range c.charges {
		lim.End(c.charges[i].Held) // the server has counted the call
	}
	c.match(&s)
	c.attempt.block, c.attempt.others, c.attempt.crowded, c.attempt.relieved = 0, c.t.waiting.Load(), "", false
	if !s.Refused {
		return s
	}
	if named(c.seats, s.Reason) >= 0 {
		c.attempt.crowded = s.Reason
	}
	if c.attempt.crowded == "" && !s.NotRate {
		c.attempt.block = c.blocked(&s)
		c.attempt.refusals = max(c.attempt.refusals, c.emptied(&s))
	}
	c.attempt.relieved = c.relieved()
	return s
}

func (c *call) match(s *reply.Reply) {
	all := c.concerned()
	for i := range all {
		all[i].said = nil
	}
	for i := range s.Limits {
		if j := target(all, s.Limits[i].Name, s.Reason); j >= 0 {
			all[j].said = &s.Limits[i]
		} else if stop := s.Limits[i].Stop; s.Refused && !s.Told && stop > 0 { // of a limit that is not the caller's
			s.After, s.Told = stop, true
		}
	}
	for i := range all {
		a := &all[i]
		if s.Undated && s.Refused && blamed(all, i, s) {
			until := reply.Limit{Ends: s.After, Stop: s.After}
			a.state.clock.correct(&until, c.sent, c.heard, true)
			s.After = until.Stop
		}
		if a.said != nil && a.said.Undated && a.said.Ends > 0 {
			a.state.clock.correct(a.said, c.sent, c.heard, s.Refused)
		}
		a.tooLittle = a.tooLittleLeft()
		a.chance = s.Refused && s.Status >= 500 && a.rate != nil &&
			a.rate.is(func(rate *adapt.Rate) bool { return rate.Chance(c.sent) })
	}
}

func (c *call) apply(v *verdict, s *reply.Reply) {
	if !v.refused && !s.Cached {
		for _, s := range c.states {
			s.accepted.Store(c.heard.UnixNano())
			s.emptied.Store(0)
		}
		c.unblock()
		for i := range c.charges {
			a := &c.charges[i]
			c.believes(a, func(told *adapt.Told) { told.Accepted(c.heard, c.sent, float64(a.Permits)) })
		}
	}
	c.stops(v, s.Reason, false) // before a new rate lets the next call go
	c.settle(v.refused)
	if v.refused {
		c.throttled(v, s)
	}
	all := c.concerned()
	for i := len(all) - 1; i >= 0; i-- { // from the named limit on: another's rate wakes calls, which may go by this
		c.learn(&all[i], &v.rulings[i])
	}
	for i := range all {
		c.tell(&all[i])
	}
	if !s.Cached {
		c.makeRoom(v, s.NotRate)
	}
	c.endProbes()              // the next call's turn
	c.stops(v, s.Reason, true) // now the limits' debts are known
	c.attempt.refusals = v.refusals
}

// stops applies the stops that include what the limits owe, or the others, and doubts refused limits that are told.
func (c *call) stops(v *verdict, reason string, owed bool) {
	for i, all := 0, c.concerned(); i < len(all); i++ {
		a, ruling := &all[i], &v.rulings[i]
		if ruling.owed != owed {
			continue
		}
		if ruling.blamed {
			doubted := doubtful(all, i, reason)
			if c.doubt(doubted, a, v.stop); doubted != a && ruling.stop > 0 && doubted.stopsWith(a) {
				doubted.stop(c.heard.Add(ruling.stop)) // nothing is saved up meanwhile
			}
		}
		wait := ruling.stop
		if o, known := a.of.Outlook(); known && ruling.owed && !a.of.Traits().Silent {
			wait -= o.Wait
		}
		if wait > 0 {
			a.stop(c.heard.Add(wait))
			c.t.learned.stopAll(a, c.heard.Add(wait))
		}
	}
}

func (c *call) throttled(v *verdict, s *reply.Reply) {
	all := c.concerned()
	var limits []string
	if len(c.charges) == 0 || c.attempt.crowded != "" || s.NotRate {
		limits = append(limits, c.attempt.crowded)
	}
	for i := range all {
		if v.rulings[i].blamed {
			all[i].state.refused.Add(1)
			limits = append(limits, all[i].name())
		}
	}
	if hook := c.t.hooks.Throttled; hook != nil {
		for _, limit := range limits {
			hook(c.response, limit, v.after)
		}
	}
}

// tell tells a calendar's quota what is left of the server's, and until when.
func (c *call) tell(a *charge) {
	if a.said != nil && a.said.Ends > 0 {
		a.of.Said(a.said.Left, c.heard.Add(a.said.Ends))
	}
}

func (c *call) learn(a *charge, r *ruling) {
	if a.rate == nil || a.toldWindow() {
		return
	}
	from, to := a.rate.change(func(rate *adapt.Rate) {
		c.hear(rate, a, r)
		switch r.lesson {
		case refused:
			rate.Refused(c.heard, c.sent, c.heard.Add(r.pause), c.response.StatusCode >= 500)
		case short:
			rate.Short(c.heard, c.sent, float64(a.Permits))
		case accepted:
			rate.Accepted(c.heard, c.sent, float64(a.Permits))
		}
	})
	if hook := c.t.hooks.RateChanged; hook != nil && from != to {
		hook(c.request, a.name(), from, to)
	}
}

// toldWindow reports whether headers tell the window of a limit whose rate nobody has asked for: its room is enough.
func (a *charge) toldWindow() bool {
	return !a.rate.asked && (a.state.room.Load() != nil || a.said != nil && a.said.Ends > 0)
}

// hear tells a rate what the response says is left and allowed, in calls or in permits.
func (c *call) hear(rate *adapt.Rate, a *charge, r *ruling) {
	if s := a.said; s != nil && !s.Bucket && s.Left >= 0 {
		left := s.Left
		if a.saidInCalls() {
			left *= rate.Cost()
		}
		rate.Left(c.sent, left)
	}
	if allowed := r.rate; allowed > 0 {
		if r.each {
			allowed *= rate.Cost()
		}
		rest := a.said.Ends
		if a.said.Bucket {
			rest = 0
		}
		rate.Said(c.heard, c.sent, allowed, rest, a.said.Spread)
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

func (c *call) makeRoom(v *verdict, notRate bool) {
	for i, all := 0, c.concerned(); i < len(all); i++ {
		a, ruling := &all[i], &v.rulings[i]
		if a.room == nil {
			a.room = a.roomOf()
		}
		switch {
		case a.room == nil:
		case !v.refused:
			a.room.accepted(c.sent, c.heard, a.leftFor(c.heard.Sub(c.sent)))
		case notRate:
			a.room.refused(c.sent, c.heard, firstBackoff, true)
		case !ruling.blamed || c.attempt.block > 0 || a.rate != nil && !a.toldWindow(): // one goes at a time, or by the rate
		case ruling.stop > 0 || c.response.StatusCode < 500 && !c.t.pauseRefused:
			a.room.refused(c.sent, c.heard, cmp.Or(ruling.stop, firstBackoff), ruling.stop == 0)
		}
	}
}
