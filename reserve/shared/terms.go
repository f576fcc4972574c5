package shared

import (
	"math"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/internal/engine"
	"github.com/nextfree/pace/smooth"
)

// terms are a policy in the numbers that the script gets, at one rate.
type terms struct {
	curve    *smooth.Curve
	upfront  bool
	capacity float64            // -1: no limit
	line     smooth.LinearPrice // the price of stored permits; zero: they are free
	packed   []byte             // for the script: see machine.lua
	book     *book              // nil: all is in the curve
}

// describe checks that the keeper can do what the policy says.
func describe(p *reserve.Policy, s *settings, n *nodes) (*terms, error) {
	if p == nil {
		return nil, valueError("policy", nil, "a policy")
	}
	t := (*engine.Policy)(p).Terms()
	if _, script := n.single.keeper.(*scriptKeeper); t.Curve == nil && script {
		return nil, &CurveError{Why: "Redis's script can't do a window or a quota by the calendar; a store can (NewIn)"}
	}
	if t.Curve == nil {
		b, curve, err := newBook(p)
		if err != nil {
			return nil, err
		}
		return &terms{curve: curve, capacity: b.capacity, book: b}, nil
	}
	if t.Stored > 0 && t.Stored < t.Curve.Capacity {
		const full = "a shared limiter, which starts with a full store"
		return nil, &reserve.OptionError{Package: "shared", Option: "WithStored", Limiter: full}
	}
	return newTerms(t.Curve, t.Upfront)
}

func newTerms(c *smooth.Curve, upfront bool) (*terms, error) {
	t := &terms{curve: c, upfront: upfront}
	var line smooth.LinearPrice
	switch {
	case c.Line != nil && c.Line.Base == 0 && !t.unlimited(): // to the script, 0 is no line
		return nil, &CurveError{Why: "the first of its stored permits are free, and others are not"}
	case c.Line != nil:
		line = *c.Line
	case c.Cost != nil:
		return nil, &CurveError{Why: "the price of its stored permits is not a smooth.LinearPrice"}
	}
	capacity := c.Capacity
	if t.unlimited() {
		capacity = -1
	}
	flags := 0.0
	if upfront {
		flags++
	}
	if c.Full {
		flags += 2
	}
	t.line, t.capacity = line, capacity
	t.packed = doubles(nil, c.Interval, line.Base, line.Threshold, line.Slope, flags)
	return t, nil
}

func (t *terms) atRate(permitsPerSecond float64) (*terms, error) {
	return newTerms(t.curve.AtRate(permitsPerSecond), t.upfront)
}

func (t *terms) unlimited() bool { return t.curve.Interval == 0 }

// A slot is the stretch of time that a request bought, with all that giving it back needs.
type slot struct {
	number   float64 // at the end of the queue then; 0 if it cost no time
	sold     float64 // by the state's time, in microseconds
	permits  int     // all of them
	deferred bool    // had at once, in spite of a debt
	begin    float64 // the debt right before the sale
	stored   float64 // in the store then
	terms    *terms
}

// A refund is the last permits of a slot, as the keeper takes them back.
type refund struct {
	slot    slot
	permits int // more than 0
}

// comeback returns what the keeper has to know, in today's terms.
func (r refund) comeback(now *terms) comeback {
	s, then := r.slot, r.slot.terms
	keep := s.permits - r.permits
	kept, length := float64(r.permits), 0.0 // what came out of the store, and the part of the queue
	begin, ready, whole := s.begin, s.begin, 0.0
	if keep == 0 {
		whole = 1
	}
	if !s.deferred {
		taken, cost := then.curve.Price(s.stored, float64(s.permits))
		stays, paid := then.curve.Price(s.stored, float64(keep))
		cost = min(cost, longest-s.begin)
		kept, length = taken-stays, max(0, cost-paid)
		if then.upfront {
			ready += cost
		} else {
			begin += paid
		}
	}
	worth := min(now.curve.Refill, then.curve.Refill)
	used := float64(keep)
	switch {
	case now == then:
	case now.unlimited() || then.unlimited():
		kept = 0
	case now.curve.Capacity != then.curve.Capacity: // as what is stored scales
		by := scale(then.curve.Capacity, now.curve.Capacity)
		kept, used = kept*by, used*by
	default:
		kept *= min(1, then.curve.Interval/now.curve.Interval)
	}
	most := math.Inf(1)
	if now.upfront && !now.unlimited() { // of a request that was larger than the capacity no more is left
		most = max(0, now.curve.Capacity-used)
	}
	return comeback{s.number, s.sold, begin, length, ready, kept, worth, whole, most}
}

// scale returns how many permits one becomes when the capacity changes.
func scale(then, now float64) float64 {
	if then == 0 {
		return 0
	}
	return now / then
}
