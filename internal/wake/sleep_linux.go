package wake

import (
	"context"
	"sync"
	"time"
)

const (
	// lastStretch is how long before its time a sleeper changes from a plain timer to an
	// alarm. It must be longer than a timer is late (at most 1 ms by rounding; 1.1 ms at the
	// 999th of 1,000, measured on an idle machine), or the moment is over before the alarm is
	// set; and short of 2 ms, because a context that ends meanwhile is not seen and a
	// cancelled wait is to return within that.
	lastStretch = 1500 * time.Microsecond

	// shortest is the wait that is not worth parking for: to park and be woken took 14 to 28
	// us of CPU time, more than 10 us of looking at the clock. It doesn't yield
	// (runtime.Gosched) either: behind a global queue and two busy local ones that made a
	// wait of 8 us take 40 ms.
	shortest = 10 * time.Microsecond
)

// sharedAlarms serves every Sleep in the process.
var sharedAlarms = newAlarms(maxAlarms, newAlarm)

func (s *Sleeper) sleep(ctx context.Context, start time.Time, d time.Duration) {
	sharedAlarms.sleep(ctx, start, d, s)
}

// sleep waits on a timer to the last stretch and on an alarm for the rest.
func (p *alarms) sleep(ctx context.Context, start time.Time, d time.Duration, s *Sleeper) {
	if !s.sleepOnTimer(ctx, start, d-lastStretch) {
		return
	}
	select { // a short sleep had no look at them yet
	case <-ctx.Done():
		return
	case <-s.woken:
		return
	default:
	}
	if d-time.Since(start) <= shortest {
		for time.Since(start) < d {
		}
		return
	}
	if a := p.get(time.Now()); a != nil {
		s.last.use(a)
		a.sleep(start, d, s.woken)
		s.last.use(nil)
		p.put(a)
	}
	s.sleepOnTimer(ctx, start, d) // for want of an alarm; after one the time is up, and it returns at once
}

// A stretch is the last of a sleep: on an alarm, which a Wake interrupts.
type stretch struct {
	mu sync.Mutex
	on *alarm // nil: none
}

func (s *stretch) use(a *alarm) {
	s.mu.Lock()
	s.on = a
	s.mu.Unlock()
}

// interrupt is called when the sleeper has its token. One that comes before the alarm has its
// deadline is seen when that is armed.
func (s *stretch) interrupt() {
	s.mu.Lock()
	if s.on != nil {
		s.on.interrupt()
	}
	s.mu.Unlock()
}
