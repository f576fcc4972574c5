package calendar

import (
	"time"

	"github.com/nextfree/pace/internal/saturate"
)

// Said corrects the ledger by a server's permits left until a reset, a time of the limiter's. A larger number than the
// ledger's is not believed: calls may be on their way. A period of FromFirst ends when the server says. For others the
// difference is that of the two clocks, if it is less than half a period.
func (l *ledger) Said(now int64, left float64, reset int64) {
	l.Advance(now)
	end := l.toWall(reset)
	if end <= l.Now {
		return
	}
	length := int64(l.period.nominal())
	switch by := l.state.end - end; {
	case l.period.kind == fromFirst:
		if l.state.end == closed.end {
			l.state = state{span: span{begin: l.Now}, at: l.state.at, pacing: pacing{paced: l.Now}}
		}
		l.state.end = min(end, saturate.Add(l.Now, length))
		l.said = l.state.end
	case by >= length/2 || by <= -length/2:
		return // it speaks of another period
	case 0 <= by && by < int64(2*time.Second): // servers round to seconds
	default:
		l.skew += by
		l.shift(by)
		l.Now = l.toWall(now)
	}
	if left >= 0 && left < float64(l.quota) {
		l.state.used = max(l.state.used, l.quota-int64(left))
	}
	l.Release()
	l.Advance(now)
}
