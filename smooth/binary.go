package smooth

import (
	"encoding/binary"
	"errors"
	"math"
)

// saved is the form of a saved ledger: FORMATS.md.
type saved struct {
	Stored float64
	Owed   int64 // nanoseconds, as all below
	Early  float64
	Pause  int64
}

// AppendState appends what is left if all waiting requests give up now: what is stored, what is owed (including charges
// behind them), and the rest of a pause. Times are relative to now. Later refunds of what was granted are worth
// nothing.
func (l *Ledger) AppendState(b []byte, now int64) []byte {
	l.advance(now)
	stored, early, owed := l.stored, l.early, -l.level(now)
	if l.waits {
		owed = addSaturating(owed, l.history.queue.charged())
	}
	whole := roundDown(early) // after a change of the rate it may be more than a nanosecond
	owed, early = addSaturating(owed, -whole), early-float64(whole)
	if owed <= 0 { // the bucket holds as much time
		if l.span > 0 {
			stored = min(stored+max(0, early-float64(owed))/l.curve.Interval, l.curve.Capacity)
		}
		early, owed = 0, 0
	}
	if l.curve.unlimited() {
		stored = l.curve.Capacity
	}
	b, _ = binary.Append(b, binary.LittleEndian, saved{stored, owed, early, l.origin(now) - now})
	return b
}

// Load returns a ledger from what AppendState saved at the time then.
func Load(curve *Curve, upfront bool, state []byte, then int64) (*Ledger, error) {
	var s saved
	if n, err := binary.Decode(state, binary.LittleEndian, &s); err != nil || n < len(state) {
		return nil, errors.New("they have another length than a limiter's that stores permits")
	}
	if !(s.Stored >= 0) || !(math.Abs(s.Early) < 2) || s.Owed < 0 || s.Pause < 0 || s.Pause > 7<<60 {
		return nil, errors.New("they have a number that no limiter has")
	}
	l := State{s.Stored, addSaturating(then, s.Owed), s.Early}.Ledger(curve, upfront)
	l.fill(then)
	if s.Pause > 0 {
		l.Pause(then, then+s.Pause)
	}
	return &l, nil
}
