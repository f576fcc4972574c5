package engine

import (
	"sync/atomic"
	"time"
)

var lid atomic.Int64

func init() {
	suspended = func() (least, most time.Duration) {
		d := atFirst + time.Duration(lid.Load())
		return d, d
	}
}

// Suspend lets the machine sleep for d: its monotonic clock stands still.
func Suspend(d time.Duration) { lid.Add(int64(d)) }

// Stall makes d pass on the limiter's clock without notice, as if the program were stopped. All callers of the limiter
// must sleep: they read the clock without the lock.
//
//go:norace
func (l *Limiter) Stall(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Epoch = l.clock.Epoch.Add(-d)
}
