package shared

import (
	"math"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/smooth"
)

// terms are a policy in numbers, at one rate.
type terms struct {
	curve    *smooth.Curve // of a policy that is not smooth's: only its rate and capacity
	upfront  bool
	kind     string             // of its saved state
	other    *engine.Policy     // of a window or a calendar; nil: the ledger is smooth's
	most     int                // the largest request that is ever granted
	capacity float64            // for the script; -1: no limit
	line     smooth.LinearPrice // the price of stored permits; zero: they are free
	packed   []byte             // for the script: see machine.lua
}

// adopt takes the longest wait of a policy, and returns its terms.
func (f *family) adopt(p *reserve.Policy) (*terms, error) {
	if p == nil {
		return nil, valueError("policy", nil, "a policy")
	}
	t := (*engine.Policy)(p).Terms()
	f.maxWait = t.MaxWait
	_, script := f.nodes.single.keeper.(*scriptKeeper)
	switch {
	case t.Curve == nil && script:
		return nil, &CurveError{Why: "Redis's script can't do a window or a quota by the calendar; a store can (NewIn)"}
	case t.Curve == nil:
		return newVariant((*engine.Policy)(p))
	case t.Stored > 0 && t.Stored < t.Curve.Capacity:
		const full = "a shared limiter, which starts with a full store"
		return nil, &reserve.OptionError{Package: "shared", Option: "WithStored", Limiter: full}
	}
	return newTerms(t.Curve, t.Upfront)
}

// newVariant returns terms whose curve has only a rate and a capacity.
func newVariant(p *engine.Policy) (*terms, error) {
	if !p.Saves() {
		return nil, &CurveError{Why: "its ledger can't be saved"}
	}
	const epoch = int64(1e18)
	l, err := p.Ledger(nil, epoch, wall)
	if err != nil {
		return nil, err
	}
	t := &terms{other: p, curve: &smooth.Curve{
		Rate: l.Rate(), Capacity: l.Stored(epoch), Interval: smooth.Interval(l.Rate()), Refill: l.Rate() / 1e9,
	}}
	t.kind = p.Terms().Package
	_, t.most = l.Size()
	return t, nil
}

func newTerms(c *smooth.Curve, upfront bool) (*terms, error) {
	t := &terms{curve: c, upfront: upfront, kind: "smooth", most: math.MaxInt, capacity: c.Capacity}
	switch {
	case c.Line != nil && c.Line.Base == 0 && !t.unlimited(): // to the script, 0 is no line
		return nil, &CurveError{Why: "the first of its stored permits are free, and others are not"}
	case c.Line != nil:
		t.line = *c.Line
	}
	if t.unlimited() {
		t.capacity = -1
	}
	flags := 0.0
	if upfront {
		flags++
	}
	if c.Free() {
		flags += 2
	}
	t.packed = doubles(nil, c.Interval, t.line.Base, t.line.Threshold, t.line.Slope, flags)
	return t, nil
}

// measure tells the script what the capacity is: 0 a time, 1 permits, 2 of permits with a price.
func (t *terms) measure() float64 {
	switch {
	case !t.curve.Free():
		return 2
	case t.curve.Fixed:
		return 1
	}
	return 0
}

func (t *terms) unlimited() bool { return t.curve.Interval == 0 }

func (t *terms) limits() limits { return limits{t.curve.Rate, t.curve.Capacity} }

func (t *terms) curveOf(of limits) *smooth.Curve {
	if of == t.limits() {
		return t.curve
	}
	curve := *t.curve.AtRate(of.rate)
	curve.Capacity = of.capacity
	return &curve
}
