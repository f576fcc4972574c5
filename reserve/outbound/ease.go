package outbound

import (
	"sync/atomic"
	"time"
)

// A rate that is exactly the server's is refused now and then: the network delivers one call a
// little later and the next one a little earlier. Where calls are counted in a sliding window, that
// is half of them once it is full, and each refusal stops the key for a second or more: 1.4 times
// the ideal, 1.9 for a window of a second. So a limit that is not adaptive and was refused is eased
// for a while: each call holds its limiter for a little longer than its permits do. Its rate stays
// as it is.
const (
	easedAfter = time.Second // from the end of the stop: before, the server has room, and the distances stay
	easedFor   = time.Minute
	easedBy    = 0.04 // of the time that a call's permits take
)

// eases says from when until when limits are eased.
type eases struct {
	memory[*ease]
	any atomic.Bool // limit was ever eased
}

// An ease is that of one limit, in nanoseconds since 1970.
type ease struct{ from, until atomic.Int64 }

// begin eases a limit after a stop that ends at resume, or for longer if it is eased already.
func (e *eases) begin(a *ask, resume time.Time) {
	e.any.Store(true)
	key := keys{a.limit, a.key}
	of, ok := e.get(key)
	if !ok {
		of = e.getOr(key, new(ease))
	}
	if resume.UnixNano() > of.until.Load() {
		of.from.Store(resume.Add(easedAfter).UnixNano())
	}
	of.until.Store(resume.Add(easedFor).UnixNano())
}

// hold holds the limiter of a call that goes now, if it is eased.
func (e *eases) hold(a *ask, now time.Time) {
	l, ok := a.by.(tunable)
	if !ok || !e.any.Load() {
		return
	}
	of, ok := e.get(keys{a.limit, a.key})
	if t := now.UnixNano(); ok && t >= of.from.Load() && t < of.until.Load() {
		l.PauseUntil(now.Add(time.Duration(min(easedBy*float64(a.cost)/l.Rate(), 1) * float64(time.Second))))
	}
}
