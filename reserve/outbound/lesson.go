package outbound

import (
	"slices"
	"time"

	"github.com/nextfree/pace/internal/adapt"
	lim "github.com/nextfree/pace/internal/limit"
	"github.com/nextfree/pace/reserve/outbound/internal/reply"
)

// A lesson is what the response to an attempt says, and of which limits. What follows for each is its ruling.
type lesson struct {
	of      *attempt
	states  *[]*limitState // the call's; limits that the response names are added
	said    reply.Reply
	charges charges // that the response concerns: the attempt's, and limits that it names
	tries   tries
}

// obey learns from the response. What it says of stops comes before a new rate lets the next call go.
func (c *call) obey() verdict {
	a := &c.attempt
	a.heard = c.t.now()
	l := lesson{of: a, states: &c.states, said: a.read(), tries: c.tries}
	l.listen()
	for of := range a.way.charges.all {
		lim.End(of.Held) // the server has counted the call
	}
	l.match()
	v := l.decide()
	if !v.refused && !l.said.Cached {
		l.accepted()
	}
	l.stops(&v, false)
	a.settle(v.refused)
	l.teach(&v)
	a.endProbes()     // the next call's turn
	l.stops(&v, true) // now the limits' debts are known
	c.tries.refusals = v.refusals
	return v
}

// match finds what the response says of each limit.
func (l *lesson) match() {
	s := &l.said
	for a := range l.charges.all {
		a.said, a.ruling = nil, ruling{}
	}
	for i := range s.Limits {
		if a := l.charges.target(s.Limits[i].Name, s.Reason); a != nil {
			a.said = &s.Limits[i]
		} else if stop := s.Limits[i].Stop; s.Refused && !s.Told && stop > 0 { // of a limit that is not the caller's
			s.After, s.Told = stop, true
		}
	}
	for a := range l.charges.all {
		if s.Undated && s.Refused && l.charges.blamed(a, s) {
			until := reply.Limit{Ends: s.After, Stop: s.After}
			a.state.clock.correct(&until, l.of.sent, l.of.heard, true)
			s.After = until.Stop
		}
		if a.said != nil && a.said.Undated && a.said.Ends > 0 {
			a.state.clock.correct(a.said, l.of.sent, l.of.heard, s.Refused)
		}
		a.tooLittle = a.tooLittleLeft()
		a.chance = s.Refused && (s.Status >= 500 || s.After <= 10*time.Second) && a.rate != nil &&
			a.rate.is(func(rate *adapt.Rate) bool { return rate.Chance(s.Status >= 500) })
	}
}

// decide makes the rulings, and the verdict on the call.
func (l *lesson) decide() verdict {
	l.tries.block, l.tries.others, l.tries.crowded, l.tries.relieved = 0, l.of.t.waiting.Load(), false, false
	if l.said.Refused {
		l.refused()
	}
	rules := l.of.way.part.rules(l.of.t.rules)
	return rules.decide(&l.said, l.charges, l.tries)
}

// refused finds what a refusal tells of the attempts so far.
func (l *lesson) refused() {
	l.tries.crowded = l.of.way.seats.named(l.said.Reason) != nil
	if !l.tries.crowded && !l.said.NotRate {
		l.tries.block = l.blocked()
		l.tries.refusals = max(l.tries.refusals, l.emptied())
	}
	l.tries.relieved = len(*l.states) > 0 && !slices.ContainsFunc(*l.states, func(s *limitState) bool {
		return s.accepted.Load() < l.of.begin.UnixNano()
	})
}
