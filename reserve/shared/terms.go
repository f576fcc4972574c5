package shared

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

// terms are a policy in the numbers that the script gets, at one rate.
type terms struct {
	curve   *smooth.Curve
	line    smooth.Line
	upfront bool
	packed  any // for the script: a string of doubles, the highest byte first
}

// describe checks that the script can do what the policy says.
func describe(p *reserve.Policy) (*terms, error) {
	if p == nil {
		return nil, &reserve.ValueError{Package: "shared", Name: "policy", Value: p, Want: "a policy"}
	}
	t, ok := p.Terms()
	if !ok {
		return nil, &CurveError{Why: "it keeps no store of permits (a window's?)"}
	}
	if t.Stored > 0 && t.Stored < t.Curve.Capacity {
		return nil, &reserve.OptionError{Package: "shared", Option: "WithStored", Limiter: "a shared limiter, which starts with a full store"}
	}
	return newTerms(t.Curve, t.Upfront)
}

func newTerms(c *smooth.Curve, upfront bool) (*terms, error) {
	t := &terms{curve: c, upfront: upfront}
	if c.Line != nil {
		t.line = *c.Line
	} else if c.Cost != nil {
		return nil, &CurveError{Why: "the price of its stored permits is not a smooth.Line"}
	}
	capacity := c.Capacity
	if t.unlimited() {
		capacity = -1
	}
	flags := [2]float64{}
	if upfront {
		flags[0] = 1
	}
	if c.Full {
		flags[1] = 1
	}
	var packed []byte
	for _, f := range []float64{capacity, c.Interval, c.Refill, t.line.Base, t.line.Threshold, t.line.Slope, flags[0], flags[1]} {
		packed = binary.BigEndian.AppendUint64(packed, math.Float64bits(f))
	}
	t.packed = string(packed)
	return t, nil
}

func (t *terms) atRate(permitsPerSecond float64) (*terms, error) {
	return newTerms(t.curve.AtRate(permitsPerSecond), t.upfront)
}

func (t *terms) unlimited() bool { return t.curve.Interval == 0 }

// price says how many of the permits come out of a store that holds stored of
// them, and what all of them cost in nanoseconds. It is what the script does, to the bit.
func (t *terms) price(stored, permits float64) (taken, cost float64) {
	if t.unlimited() {
		return 0, 0
	}
	taken = permits
	if permits > stored {
		taken = stored
		cost = float64((permits - stored) * t.curve.Interval)
	}
	if t.line.Base > 0 && taken > 0 {
		cost += t.line.Cost(stored, taken)
	}
	return taken, cost
}

// A slot is what a request bought: what has to be known to give it back.
type slot struct {
	number  int64   // in the order of sale
	permits int     // all of them
	stored  float64 // in the store right before the sale
	room    float64 // the inflow at which the store may be full again
	terms   *terms
}

// A refund is the last permits of a slot, as the script takes them back.
type refund struct {
	slot    slot
	permits int   // more than 0
	due     bool  // the time of the slot has come
	ready   int64 // or will have, on the limiter's clock
}

// append appends the refund in today's terms.
func (r refund) append(args []any, now *terms) []any {
	s, then := r.slot, r.slot.terms
	all, keep := float64(s.permits), float64(s.permits-r.permits)
	taken, cost := then.price(s.stored, all)
	kept, paid := then.price(s.stored, keep)
	stored, length, room := taken-kept, cost-paid, s.room
	fresh := float64(r.permits) - stored
	switch {
	case now == then:
	case now.unlimited() || then.unlimited():
		stored, fresh, room = 0, 0, 0
	default:
		fresh *= then.curve.Interval / now.curve.Interval // a debt keeps its time
		scale := 0.0
		if then.curve.Capacity > 0 {
			scale = now.curve.Capacity / then.curve.Capacity
		}
		stored, room = stored*scale, room*scale
	}
	return append(args, s.number, number(stored), number(fresh), number(length), number(room),
		flag(r.permits == s.permits), flag(r.due))
}

// number writes a float so that Lua reads the same one.
func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
