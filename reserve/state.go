package reserve

// A StateError says why bytes are not the state of a limiter of that policy.
type StateError struct {
	Why string // "they are cut off"
}

func (e *StateError) Error() string { return "pace: these bytes are no state to restore: " + e.Why }

// AppendBinary appends to b what must outlive the process, for [Policy.Restore]: what is stored or owed, what is used
// of a window or a period, and the end of a pause, in some 75 bytes (a window: 2 to 12 for each call in it). Granted
// permits count as used. Waiting requests are left out, as if they had given up.
func (l *Limiter) AppendBinary(b []byte) ([]byte, error) { return l.engine().AppendBinary(b) }

// Restore returns a limiter of this policy with a state that [Limiter.AppendBinary] has saved, as if idle since. The
// policy may be another of the same variant: then the limiter changes now, as by [Limiter.SetPolicy].
//
// The time between is the wall clock's; if that was set back, none has passed. A bursty limiter at 10/s that was saved
// while it owed 5 s owes 3 s after 2 s.
//
// It returns a *[StateError] if the bytes are of another variant, of a newer version, or damaged.
func (p *Policy) Restore(state []byte) (*Limiter, error) {
	l, err := p.engine().Restore(state)
	if err != nil {
		return nil, &StateError{Why: err.Error()}
	}
	return (*Limiter)(l), nil
}
