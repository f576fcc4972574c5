package smooth

import "math"

// A State is all that a Ledger remembers as long as its rate is the first one and
// nothing that it sold can come back: 24 bytes, for whoever keeps very many. A
// Ledger made of it, used, and turned into a State again is as good as one that was kept.
type State struct {
	stored float64
	next   int64
	carry  float64
}

// State returns the state of a ledger that has sold nothing which may be returned
// (Take and Charge don't), and whose rate was not changed.
func (l *Ledger) State() State {
	return State{stored: l.stored, next: l.next, carry: l.carry}
}

// Ledger returns a ledger in that state.
func (s State) Ledger(curve *Curve, upfront bool) Ledger {
	return Ledger{curve: curve, stored: s.stored, next: s.next, carry: s.carry, until: math.MinInt64, upfront: upfront}
}

// Idle reports whether every slot that was sold is over, and paid for. Then only the store is left
// to remember.
func (l *Ledger) Idle(now int64) bool {
	l.advance(now)
	return !l.waiting() && float64(now-l.next) >= l.carry
}
