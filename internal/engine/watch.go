package engine

// Watch calls f, under the limiter's lock, when promised times become earlier, or later (a pause, a stop, Retime),
// except by time that passes. F must not call the limiter, nor block. After it returns false it is dropped.
func (l *Limiter) Watch(f func(later bool) (keep bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sleepersOf()
	s.watchers = append(s.watchers, f)
}

// sleepersOf needs the limiter's lock.
func (l *Limiter) sleepersOf() *sleepers {
	if l.cold.sleepers == nil {
		l.cold.sleepers = new(sleepers)
	}
	return l.cold.sleepers
}
