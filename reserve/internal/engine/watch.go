package engine

import "slices"

// Watch calls f, under the limiter's lock, when promised times become earlier, or later (a pause, a stop, Retime),
// except by time that passes. F must not call the limiter, nor block. After it returns false it is dropped.
func (l *Limiter) Watch(f func(later bool) (keep bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sleepersOf()
	s.watchers = append(s.watchers, f)
}

// notify calls the watchers, under the limiter's lock. S may be nil.
func (s *sleepers) notify(later bool) {
	if s != nil && len(s.watchers) > 0 {
		s.watchers = slices.DeleteFunc(s.watchers, func(f func(bool) bool) bool { return !f(later) })
	}
}

// sleepersOf needs the limiter's lock.
func (l *Limiter) sleepersOf() *sleepers {
	if l.cold.sleepers == nil {
		l.cold.sleepers = new(sleepers)
	}
	return l.cold.sleepers
}
