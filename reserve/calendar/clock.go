package calendar

import (
	"math"

	"github.com/nextfree/pace/internal/saturate"
)

// shift moves promised times on the wall clock, which was set, so that they stay on the limiter's clock.
func (l *ledger) shift(step int64) {
	l.offset += step
	if l.state.paced > math.MinInt64 {
		l.state.paced = saturate.Add(l.state.paced, step)
	}
	for i := range l.queue {
		if r := &l.queue[i]; r.latest != asap && r.latest != never {
			r.latest = saturate.Add(r.latest, step)
		}
	}
	l.known = 0
}

func (l *ledger) toWall(t int64) int64 { return saturate.Add(t, l.offset) }

func (l *ledger) toLimiter(t int64) int64 {
	if t == never {
		return never
	}
	return saturate.Add(t, -l.offset)
}
