package engine

import "time"

// Stall makes d pass on the limiter's clock without notice, as if the program were stopped. All callers of the limiter
// must sleep: they read the clock without the lock.
//
//go:norace
func (l *Limiter) Stall(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Epoch = l.clock.Epoch.Add(-d)
}
