package window

import (
	"iter"

	"github.com/nextfree/pace/internal/saturate"
)

// Behind returns when a request for permits would be ready if requests of the sizes ahead (each at
// least 1; nil: none) were made now, before it. It takes nothing. A size beyond the window counts as
// a request for the whole window that is then settled at that size.
//
// Of a window of 10 a second with none used, behind 6, 6 and 6, a request for 4 is ready in 2 s, and
// behind 18 requests for 1 in 1.
func (l *ledger) Behind(now int64, ahead iter.Seq[int], permits int) int64 {
	if permits > l.Max() {
		return never
	}
	l.advance(now)
	if ahead != nil {
		// The requests ahead join the list while their times are worked out, and leave it again.
		length := l.ring.length
		defer func() {
			l.unplace(length)
			l.ring.length = length
		}()
		for n := range ahead {
			at := l.next(uint64(min(n, l.Max())), l.rule)
			l.ring.push(request{number: l.number, permits: uint64(n), at: at, rule: l.rule})
			l.placed++
			l.held.add(uint64(n))
		}
	}
	return saturate.Add(l.next(uint64(permits), l.rule), l.rule.behind)
}
