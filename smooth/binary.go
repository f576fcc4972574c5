package smooth

import (
	"encoding/binary"
	"errors"
	"math"
)

const stateNumbers = 4

// AppendState appends what is left if all waiting requests give up now: what is stored, what is owed (including charges
// behind them), and the rest of a pause. Times are relative to now. Later refunds of what was granted are worth
// nothing.
func (l *Ledger) AppendState(b []byte, now int64) []byte {
	l.advance(now)
	stored, early, owed := l.stored, l.early, -l.level(now)
	if l.waits {
		owed = addSaturating(owed, l.history.queue.charged())
	}
	if owed <= 0 { // the bucket holds as much time
		if l.span > 0 {
			stored = min(stored+max(0, early-float64(owed))/l.curve.Interval, l.curve.Capacity)
		}
		early, owed = 0, 0
	}
	if l.curve.unlimited() {
		stored = l.curve.unlimitedStore()
	}
	for _, n := range [stateNumbers]uint64{
		math.Float64bits(stored), uint64(owed), math.Float64bits(early), uint64(l.origin(now) - now),
	} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// Load returns a ledger from what AppendState saved at the time then.
func Load(curve *Curve, upfront bool, saved []byte, then int64) (*Ledger, error) {
	if len(saved) != 8*stateNumbers {
		return nil, errors.New("they have another length than a limiter's that stores permits")
	}
	var n [stateNumbers]uint64
	for i := range n {
		n[i] = binary.LittleEndian.Uint64(saved[8*i:])
	}
	stored, owed := math.Float64frombits(n[0]), int64(n[1])
	early, pause := math.Float64frombits(n[2]), int64(n[3])
	if !(stored >= 0) || !(math.Abs(early) < 2) || owed < 0 || pause < 0 || pause > 7<<60 {
		return nil, errors.New("they have a number that no limiter has")
	}
	if curve.unlimited() {
		stored, owed, early = 0, 0, 0
	}
	l := State{stored: min(stored, curve.Capacity), empty: addSaturating(then, owed), early: early}.Ledger(curve, upfront)
	l.fill(then)
	if pause > 0 {
		l.Pause(then, then+pause)
	}
	return &l, nil
}
