package smooth

import "math"

// A State is all that a Ledger remembers while its rate is the first and nothing it sold can come back: 24 bytes.
type State struct {
	stored float64
	empty  int64
	early  float64
}

// State returns the state of a ledger without reservations, at its first rate.
func (l *Ledger) State() State {
	return State{stored: l.stored, empty: l.empty, early: l.early}
}

func (s State) Ledger(curve *Curve, upfront bool) Ledger {
	return Ledger{
		curve: curve, stored: min(s.stored, curve.Capacity, math.MaxFloat64), empty: s.empty, early: s.early,
		span: curve.span(), low: math.MaxInt64, upfront: upfront,
	}
}
