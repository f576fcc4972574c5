package reserve

import "slices"

// watch calls f, under the limiter's lock, whenever promised times may have changed other than by the passing of
// time: see [hooks.Hooks].
func (l *Limiter) watch(f func(later bool) (keep bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sleepersOf()
	s.watchers = append(s.watchers, f)
}

// notify calls the watchers. The limiter must be locked. S may be nil.
func (s *sleepers) notify(later bool) {
	if s != nil && len(s.watchers) > 0 {
		s.watchers = slices.DeleteFunc(s.watchers, func(f func(bool) bool) bool { return !f(later) })
	}
}

// sleepersOf returns the limiter's sleepers. The limiter must be locked.
func (l *Limiter) sleepersOf() *sleepers {
	if l.cold.sleepers == nil {
		l.cold.sleepers = &sleepers{all: l.clock.Fake != nil}
	}
	return l.cold.sleepers
}
