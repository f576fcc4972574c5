package outbound

import (
	"slices"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A lesson is what the response to an attempt says, and of which limits. What follows for each is its ruling.
type lesson struct {
	of      *attempt
	states  *[]*limitState // the call's; limits that the response names are added
	said    reply.Reply
	charges []charge // that the response concerns: the attempt's, and limits that it names
	tries   tries
}

// obey learns from the response. What it says of stops comes before a new rate lets the next call go.
func (c *call) obey() verdict {
	a := &c.attempt
	a.heard = c.t.now()
	l := lesson{of: a, states: &c.states, said: a.read(), tries: c.tries}
	l.listen()
	for i := range a.way.charges {
		lim.End(a.way.charges[i].Held) // the server has counted the call
	}
	l.match()
	var memory [few]ruling
	rulings := memory[:]
	if len(l.charges) > few {
		rulings = make([]ruling, len(l.charges))
	}
	v := l.decide(rulings[:len(l.charges)])
	if !v.refused && !l.said.Cached {
		l.accepted()
	}
	l.stops(&v, rulings, false)
	a.settle(v.refused)
	l.teach(&v, rulings)
	a.endProbes()              // the next call's turn
	l.stops(&v, rulings, true) // now the limits' debts are known
	c.tries.refusals = v.refusals
	return v
}

// match finds what the response says of each limit.
func (l *lesson) match() {
	s, all := &l.said, l.charges
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
			a.state.clock.correct(&until, l.of.sent, l.of.heard, true)
			s.After = until.Stop
		}
		if a.said != nil && a.said.Undated && a.said.Ends > 0 {
			a.state.clock.correct(a.said, l.of.sent, l.of.heard, s.Refused)
		}
		a.tooLittle = a.tooLittleLeft()
		a.chance = s.Refused && s.Status >= 500 && a.rate != nil &&
			a.rate.is(func(rate *adapt.Rate) bool { return rate.Chance(l.of.sent) })
	}
}

// decide makes the rulings, and the verdict on the call.
func (l *lesson) decide(rulings []ruling) verdict {
	l.tries.block, l.tries.others, l.tries.crowded, l.tries.relieved = 0, l.of.t.waiting.Load(), "", false
	if l.said.Refused {
		l.refused()
	}
	rules := l.of.way.part.rules(l.of.t.rules)
	return rules.decide(&l.said, l.charges, l.tries, rulings)
}

// refused finds what a refusal tells of the attempts so far.
func (l *lesson) refused() {
	if named(l.of.way.seats, l.said.Reason) >= 0 {
		l.tries.crowded = l.said.Reason
	}
	if l.tries.crowded == "" && !l.said.NotRate {
		l.tries.block = l.blocked()
		l.tries.refusals = max(l.tries.refusals, l.emptied())
	}
	l.tries.relieved = len(*l.states) > 0 && !slices.ContainsFunc(*l.states, func(s *limitState) bool {
		return s.accepted.Load() < l.of.begin.UnixNano()
	})
}
