package model

import "math"

// Choice is what the rules leave open: how the last one in the queue is taken back if it
// is not the newest. Zero: as if it had never been.
type Choice int

// They can be combined.
const (
	Late   Choice = 1 << iota // if its time has come: as any older one
	Simply                    // what it took goes back, and did not exist meanwhile
	Keep                      // what others took whose stretches are cut off with it stays aside
	Choices
)

// Settle says that so many permits of a grant were used. Ids grow with time, and id+1 is
// for it to use: what is given back of a grant is a grant of its own, made at the same
// time and cancelled. Fresh is an id for what is charged.
func (l *Limiter) Settle(id, actual, fresh int, choice Choice) {
	i, g := l.get(id)
	if g == nil || g.closed {
		return
	}
	due := l.real(g.ready, i) <= l.now
	g.closed = true
	switch {
	case actual > g.permits:
		l.charge(fresh, actual-g.permits)
	case actual == g.permits:
	default:
		last, newest := l.last(g, due, choice), l.newest() == g && !(g.buried && due && choice&Late != 0)
		if actual > 0 {
			g = l.split(i, g, actual)
			if l.upfront { // the front: what is kept is behind it, unless that is nothing
				last, newest = l.last(g, due, choice), false
			}
		}
		l.giveBack(g, due, last || newest, newest, choice)
	}
}

// last says whether nothing is behind a grant in the queue.
func (l *Limiter) last(g *event, due bool, choice Choice) bool {
	return g.to >= l.end()-hair && !(choice&Late != 0 && due)
}

// Begun says whether a part of a stretch has passed before its permits may be used.
func (l *Limiter) Begun(id int) bool {
	i, g := l.get(id)
	return g != nil && g.from < l.clock()-hair && l.real(g.ready, i) > l.now
}

// Edgy says whether it is too near to tell where n permits fit.
func (l *Limiter) Edgy(n int) bool {
	for _, p := range l.places(n) {
		if math.Abs(p.spare) <= l.Unsure && l.Unsure > 0 {
			return true
		}
	}
	return false
}

// split makes two grants of one; the second, which it returns, is what is given back.
// Kept is the begin of the stretch and what that bought, stored permits first. Paid upfront
// it is the end, because the time that was promised is there.
func (l *Limiter) split(i int, g *event, keep int) *event {
	rest := *g
	rest.id++
	rest.permits = g.permits - keep
	g.permits = keep
	if l.upfront {
		rest.took = math.Min(float64(rest.permits), g.took)
		g.took -= rest.took
		cost := g.curve.Cost(g.stored, rest.took) + (float64(rest.permits)-rest.took)*g.curve.Interval
		rest.to = g.from + cost
		g.from, g.stored = rest.to, g.stored-rest.took
	} else {
		g.took = math.Min(float64(keep), g.took)
		rest.took -= g.took
		cost := g.curve.Cost(g.stored, g.took) + (float64(keep)-g.took)*g.curve.Interval
		g.to = g.from + cost
		rest.from, rest.stored = g.to, g.stored-g.took
	}
	l.events = append(l.events[:i+1], append([]*event{&rest}, l.events[i+1:]...)...)
	for j := range l.pauses {
		if l.pauses[j].after > i {
			l.pauses[j].after++
		}
	}
	return &rest
}

// giveBack takes back all of a grant.
//   - The newest one has never been, nor has the last one in the queue. Nor have the
//     stretches for sale that are then behind its end, or the permits that their owners took.
//   - An older one whose time is to come: nobody owns its stretch, and the stored
//     permits that it took wait for the end of the queue.
//   - One whose time has come: its permits wait for the end of the queue, as many as the
//     store would still hold for certain if they had never left it. What was fresh counts
//     for no more than its time would have stored, at the rates of that time.
func (l *Limiter) giveBack(g *event, due, last, newest bool, choice Choice) {
	simply := choice&Simply != 0 && !newest
	switch {
	case last && simply:
		g.gone = true
		l.events = append(l.events, &event{at: l.clock(), kind: comeback, of: g, amount: l.today(g, g.took), stored: l.today(g, g.took), cutOff: true})
	case last:
		if !newest {
			l.bury(g)
		}
		l.erase(g)
	case due:
		amount := l.today(g, g.took) + math.Min(l.today(g, float64(g.permits)-g.took), l.worth(g.from, g.to))
		amount = math.Max(0, math.Min(amount, l.walk(g).room))
		l.events = append(l.events, &event{at: l.clock(), kind: comeback, of: g, amount: amount, stored: l.today(g, g.took)})
		return // it keeps its stretch
	default:
		g.gone = true
		l.events = append(l.events, &event{at: l.clock(), kind: comeback, of: g, amount: l.today(g, g.took), stored: l.today(g, g.took)})
	}
	end := l.end()
	for _, e := range append([]*event(nil), l.events...) {
		if e.kind != grant || !e.gone {
			continue
		}
		e.to = math.Min(e.to, end)
		switch {
		case e.from < end-hair, choice&Keep != 0 && e != g:
		case !simply:
			l.bury(e)
			l.erase(e)
		case e != g:
			l.events = append(l.events, &event{at: l.clock(), kind: comeback, of: e, amount: l.today(e, e.took), wasAside: true})
		}
	}
}

// today is a number of stored permits of a grant's time, scaled as the store was since.
func (l *Limiter) today(g *event, permits float64) float64 {
	if permits == 0 || g.curve.Capacity == 0 {
		return 0
	}
	return permits * l.Capacity() / g.curve.Capacity
}

// worth is what idle time would have stored, in terms of today's store.
func (l *Limiter) worth(from, to float64) float64 {
	permits, capacity := 0.0, l.Capacity()
	curve, begin := l.curve(l.rate), math.Inf(-1)
	span := func(end float64) {
		if a, b := math.Max(from, begin), math.Min(to, end); a < b && capacity > 0 {
			permits += (b - a) * curve.Refill * capacity / curve.Capacity
		}
	}
	for _, e := range l.events {
		if e.kind == newRate {
			span(e.at)
			curve, begin = l.curve(e.rate), e.at
		}
	}
	span(math.Inf(1))
	return permits
}

// bury marks those older than one that is taken back, and was not the newest.
func (l *Limiter) bury(by *event) {
	for _, e := range l.events {
		if e.kind == grant && e.id < by.id {
			e.buried = true
		}
	}
}

func (l *Limiter) newest() *event {
	for i := len(l.events) - 1; i >= 0; i-- {
		if e := l.events[i]; e.kind == grant && !e.gone {
			return e
		}
	}
	return nil
}

// erase takes a grant, and all that came of it, off the list.
func (l *Limiter) erase(g *event) {
	for i := len(l.events) - 1; i >= 0; i-- {
		if l.events[i] == g || l.events[i].of == g {
			l.events = append(l.events[:i], l.events[i+1:]...)
			for j := range l.pauses {
				if l.pauses[j].after > i {
					l.pauses[j].after--
				}
			}
		}
	}
}
