package engine

import "slices"

// Watch makes the limiter call f whenever promised times may have changed for another reason than that time passes. They
// may be earlier after a Cancel, a Settle for less, SetRate, SetPolicy or Resume, and later (true) after a pause, a stop
// or Retime. It is called under the limiter's lock, so it must not call the limiter, nor block. The limiter drops f once
// that returns false.
func (l *Limiter) Watch(f func(later bool) (keep bool)) {
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
