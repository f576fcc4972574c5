package reserve

import "time"

// Stall makes d pass on the limiter's clock without anybody noticing, as if the program were stopped.
func Stall(l *Limiter, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock.Epoch = l.clock.Epoch.Add(-d)
}
