package engine

import (
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/wake"
)

// While a laptop's lid is shut, the monotonic clock of Linux stands still, and servers' clocks go on. So readings have
// the time of suspensions added, which is looked for once a minute.
var (
	slept      atomic.Int64 // nanoseconds of suspensions since the program began, at least
	looked     atomic.Int64 // when they were last looked for, since the program began
	began      = time.Now()
	_, atFirst = wake.Suspended() // at most: what was no suspension must move no request
	suspended  = wake.Suspended   // tests have their own
)

const lookEach = time.Minute

// awake returns a reading with the time of a suspension that was not known.
func (c *Clock) awake(now int64) int64 {
	if c.Fake != nil {
		return now
	}
	t, last := now+int64(c.Epoch.Sub(began)), looked.Load()
	if d := t - last; d >= 0 && d < int64(lookEach) || !looked.CompareAndSwap(last, t) {
		return now
	}
	least, _ := suspended()
	was, is := slept.Load(), int64(least-atFirst)
	if is-was < stall || !slept.CompareAndSwap(was, is) {
		return now
	}
	return now + is - was
}
