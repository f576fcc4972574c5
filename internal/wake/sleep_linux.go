package wake

import (
	"context"
	"time"
)

const (
	// lastStretch is how long before its time a sleeper changes from a plain timer to an alarm. It must be longer than
	// a timer is late (at most 1 ms by rounding; 1.1 ms at the 999th of 1,000, measured on an idle machine), or the
	// moment is over before the alarm is set; and short of 2 ms, because a context that ends meanwhile is not seen and
	// a cancelled wait is to return within that.
	lastStretch = 1500 * time.Microsecond

	// shortest is the wait that is not worth parking for: to park and be woken took 14 to 28 us of CPU time, more than
	// 10 us of looking at the clock. It doesn't yield (runtime.Gosched) either: behind a global queue and two
	// busy local ones that made a wait of 8 us take 40 ms.
	shortest = 10 * time.Microsecond
)

// sharedAlarms serves every Sleep in the process.
var sharedAlarms = newAlarms(maxAlarms, newAlarm)

func sleep(ctx context.Context, start time.Time, d time.Duration, moved <-chan struct{}) {
	sharedAlarms.sleep(ctx, start, d, moved)
}

// sleep waits on a timer to the last stretch and on an alarm for the rest.
func (p *alarms) sleep(ctx context.Context, start time.Time, d time.Duration, moved <-chan struct{}) {
	if !sleepOnTimer(ctx, start, d-lastStretch, moved) {
		return
	}
	select { // a short sleep had no look at them yet
	case <-ctx.Done():
		return
	case <-moved:
		return
	default:
	}
	if d-time.Since(start) <= shortest {
		for time.Since(start) < d {
		}
		return
	}
	if a := p.get(time.Now()); a != nil {
		a.sleep(start, d)
		p.put(a)
	}
	sleepOnTimer(ctx, start, d, moved) // for want of an alarm; after one the time is up, and it returns at once
}
