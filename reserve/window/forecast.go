package window

import (
	"iter"
	"math"
	"math/bits"

	"github.com/nextfree/pace/internal/saturate"
)

// Behind counts a size beyond the window as a request for the whole window, settled at that size.
//
// With 10 a second and none used, a request for 4 behind 6, 6 and 6 is ready in 2 s, and behind 18 requests for 1 in 1
// s.
func (l *ledger) Behind(now int64, ahead iter.Seq[int], permits int) int64 {
	if permits > l.most() {
		return never
	}
	l.advance(now)
	if ahead != nil {
		length := l.ring.length
		defer func() {
			l.unplace(length)
			l.ring.length = length
		}()
		for n := range ahead {
			at := l.next(uint64(min(n, l.most())), l.config)
			l.ring.push(request{number: l.number, permits: uint64(n), at: at, config: l.config})
			l.placed++
			l.held.add(uint64(n))
		}
	}
	return saturate.Add(l.next(uint64(permits), l.config), l.config.behind)
}

func (l *ledger) Forecast(now int64, n int) int64 {
	// A permit goes when the permit a whole window in front leaves.
	windows, last := (n-1)/l.most(), (n-1)%l.most()+1
	ready := l.Behind(now, nil, last)
	high, later := bits.Mul64(uint64(windows), uint64(l.config.per))
	if high > 0 || later > math.MaxInt64 {
		return never
	}
	return saturate.Add(ready, int64(later))
}

func (l *ledger) TakeUpTo(now int64, permits int) (taken int) {
	l.advance(now)
	used := l.used()
	switch {
	case l.waiting() || now < l.Paused():
		return 0
	case l.config.per == 0: // no limit
	case used.exceeds(l.config.size):
		return 0
	default:
		permits = int(min(uint64(permits), l.config.size-used.low))
	}
	if permits > 0 {
		l.push(uint64(permits), l.floor, l.config, true)
	}
	return permits
}
