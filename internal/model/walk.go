package model

import "math"

// state is what a walk finds.
type state struct {
	curve         Curve
	rate          float64
	stored, aside float64
	// room is what the watched grant left of the capacity, less all that flowed in since.
	room float64
}

// walk goes through all events, and through the time between them until now.
func (l *Limiter) walk(watched *event) state {
	s := state{curve: l.curve(l.rate), rate: l.rate, stored: l.start}
	watching := false
	var seen []*event
	t, end := 0.0, 0.0
	earn := func(from, to float64, into *float64) {
		if to <= from {
			return
		}
		permits := (to - from) * s.curve.Refill
		for _, g := range seen {
			if owned := math.Min(to, g.to) - math.Max(from, g.from); owned > 0 && !g.gone {
				permits -= owned * s.curve.Refill
			}
		}
		permits = math.Max(0, permits)
		if watching {
			s.room -= permits
		}
		*into += math.Max(0, math.Min(permits, s.curve.Capacity-s.stored-s.aside))
	}
	pass := func(to float64) {
		earn(t, math.Min(to, end), &s.aside)
		if to >= end-hair {
			s.stored += s.aside
			s.aside = 0
			earn(math.Max(t, end), to, &s.stored)
		}
		t = to
	}
	for _, e := range l.events {
		pass(e.at)
		switch e.kind {
		case grant:
			s.stored -= e.took
			seen = append(seen, e)
			end = math.Max(end, e.to)
			if e == watched {
				watching = true
				s.room = s.curve.Capacity - s.stored - s.aside
			}
		case comeback:
			if e.wasAside {
				moved := math.Min(e.amount, s.aside)
				s.aside -= moved
				s.stored += moved
				break
			}
			if watching {
				s.room -= e.amount
				if e.of.id > watched.id { // in the store when that was granted, so they did not flow in since
					s.room += math.Min(e.amount, e.stored)
				}
			}
			if e.cutOff {
				s.stored += math.Min(e.amount, s.curve.Capacity-s.stored)
				break
			}
			s.aside += math.Max(0, math.Min(e.amount, s.curve.Capacity-s.stored-s.aside))
		case newRate:
			old := s.curve
			s.curve, s.rate = l.curve(e.rate), e.rate
			scale := 0.0
			if old.Capacity > 0 {
				scale = s.curve.Capacity / old.Capacity
			}
			s.stored *= scale
			s.aside *= scale
			s.room *= scale
		}
	}
	pass(l.clock())
	return s
}
