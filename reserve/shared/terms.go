package shared

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/nextfree/pace/internal/engine"
	"github.com/nextfree/pace/internal/smooth"
	"github.com/nextfree/pace/reserve"
)

type terms struct {
	curve    *smooth.Curve // of a policy that is not smooth's: only its rate and capacity
	upfront  bool
	kind     string             // of its saved state: all of smooth's can follow each other
	other    *engine.Policy     // of a window or a calendar; nil: the ledger is smooth's
	most     int                // the largest request that is ever granted
	capacity float64            // for the script; -1: no limit
	line     smooth.LinearPrice // the price of stored permits; zero: they are free
	packed   []byte             // for the script: see machine.lua
	tracks   bool               // its ledger counts permits by their use
	rules    *rules
	ahead    float64 // of a request that is paid upfront: see smooth.Curve's Ahead
}

// rules are terms as they are saved, of any process.
type rules struct {
	saved   []byte
	curve   *smooth.Curve // nil: the ledger is not smooth's
	upfront bool
	like    engine.Ledger // one that has these rules, if it is not smooth's
}

func (r *rules) same(of *rules) bool { return r == of || bytes.Equal(r.saved, of.saved) }

func (r *rules) fill() int64 {
	c := r.curve
	switch {
	case c == nil:
		capacity, _ := r.like.Size()
		return int64(min(capacity/r.like.Rate()*1e9, longest))
	case c.Interval == 0 || c.Capacity == 0:
		return 0
	}
	return int64(min(c.Capacity/c.Refill, longest))
}

func (t *terms) rulesOf(saved []byte) (r *rules, err error) {
	if bytes.Equal(saved, t.rules.saved) {
		return t.rules, nil
	}
	r = &rules{saved: bytes.Clone(saved)}
	if t.other != nil {
		r.like, err = t.other.Load(saved, nil, int64(epoch), wall)
	} else {
		r.curve, r.upfront, err = smooth.LoadTerms(saved)
	}
	return r, err
}

const epoch = int64(1e18)

func (f *family) adopt(p *reserve.Policy) (*terms, error) {
	if p == nil {
		return nil, valueError("policy", nil, "a policy")
	}
	t := (*engine.Policy)(p).Terms()
	f.maxWait, f.limitName = t.MaxWait, t.Name
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

func newVariant(p *engine.Policy) (*terms, error) {
	if !p.Saves() {
		return nil, &CurveError{Why: "its ledger can't be saved"}
	}
	l := p.Ledger(epoch, wall)
	t := &terms{other: p, curve: &smooth.Curve{
		Rate: l.Rate(), Capacity: l.Stored(epoch), Interval: smooth.Interval(l.Rate()), Refill: l.Rate() / 1e9,
	}}
	t.kind = p.Terms().Package
	_, t.most = l.Size()
	t.tracks = tracks(l)
	t.rules = &rules{saved: engine.TermsOf(l), like: l}
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
	if upfront {
		t.ahead = float64(c.Ahead())
	}
	t.rules = &rules{saved: c.AppendTerms(nil, upfront), curve: c, upfront: upfront}
	t.packed = doubles(nil, c.Interval, t.line.Base, t.line.Threshold, t.line.Slope, flags)
	return t, nil
}

func (t *terms) fingerprint() string {
	sum := sha256.Sum256(t.rules.saved)
	return fmt.Sprintf("%s-%x", t.kind, sum[:4])
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
