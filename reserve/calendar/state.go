package calendar

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/nextfree/pace/internal/line"
)

// AppendState includes charges behind waiting requests. Times are the wall clock's.
func (l *ledger) AppendState(b []byte, now int64) []byte {
	l.Advance(now)
	s := l.state
	s.at = l.Now // no request waits
	if charges := l.Permits(true); charges > 0 {
		s = l.After(s, charges, line.Asap)
	}
	numbers := []int64{s.begin, s.end, s.used, s.paced, l.toWall(max(l.Stopped, now)), s.beyond}
	if s.beyond == 0 {
		numbers = numbers[:5]
	}
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func (r *rule) load(saved []byte, then int64, wall func(t int64) time.Time) (*ledger, error) {
	var n [6]int64
	numbers := len(saved) / 8
	if len(saved)%8 != 0 || numbers != 5 && numbers != 6 {
		return nil, errors.New("they have another length than a calendar's")
	}
	for i := range numbers {
		n[i] = int64(binary.LittleEndian.Uint64(saved[8*i:]))
	}
	of := state{span: span{begin: n[0], end: n[1]}, used: n[2], paced: n[3], at: math.MinInt64}
	if of.used < 0 || of.span != closed && of.begin >= of.end {
		return nil, errors.New("they have a period that ends before it begins, or a negative use")
	}
	l := newLedger(r, then, wall)
	if of.span == closed && r.period.kind != fromFirst {
		return l, nil // of another kind of period, and nothing used
	}
	of.beyond = max(0, min(n[5], of.used-r.quota))
	l.state = of
	if end := l.state.end; r.period.kind != fromFirst && end > l.Now {
		// The zone's rules, or the kind of period, may have changed.
		if l.state.span = r.period.around(max(l.Now, of.begin)); l.state.used > 0 && l.Now < of.begin {
			l.state.span = of.span // the clock was set back: it goes on
		}
	}
	if stopped := n[4] - l.Offset; stopped > then {
		l.Stopped = stopped
	}
	l.state = l.open(l.state, l.Now)
	return l, nil
}
