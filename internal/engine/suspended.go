package engine

import (
	"sync/atomic"
	"time"

	"github.com/nextfree/pace/internal/wake"
)

// While a laptop's lid is shut, the monotonic clock of Linux stands still, and servers' clocks go on. So readings have
// the time of suspensions added, which is looked for when a caller is told to wait, once a minute.
var (
	slept     atomic.Int64 // nanoseconds of suspensions since the program began, as far as is known
	looked    atomic.Int64 // when they were last looked for, since the program began
	began     = time.Now()
	atFirst   = wake.Suspended()
	suspended = wake.Suspended // tests have their own
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
	was, is := slept.Load(), int64(suspended()-atFirst)
	if is-was < stall || !slept.CompareAndSwap(was, is) { // the two readings are not of the same moment
		return now
	}
	return now + is - was
}
