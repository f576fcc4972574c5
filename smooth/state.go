package smooth

import "math"

// A State is all that a Ledger remembers as long as its rate is the first one and
// nothing that it sold can come back: 24 bytes, for whoever keeps very many. A
// Ledger made of it, used, and turned into a State again is as good as one that was kept.
type State struct {
	stored float64
	next   int64
	early  float64
}

// State returns the state of a ledger that has made no reservation (Take and Charge are allowed), and whose
// rate was not changed.
func (l *Ledger) State() State {
	return State{stored: l.stored, next: l.next, early: l.early}
}

// Ledger returns a ledger in that state.
func (s State) Ledger(curve *Curve, upfront bool) Ledger {
	return Ledger{curve: curve, stored: s.stored, next: s.next, early: s.early, low: math.Inf(1), upfront: upfront}
}

// Idle reports whether nothing is owed and no request waits, so that the store is the whole state.
func (l *Ledger) Idle(now int64) bool {
	l.advance(now)
	return !l.waits && now >= l.next && math.Abs(l.early) < epsilon
}
