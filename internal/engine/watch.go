package engine

import (
	"slices"
	"weak"
)

// A Watcher is told when a limiter's promised times become earlier, or later (a pause, a stop, Retime), except by time
// that passes. Tell runs under the limiter's lock: it must not call the limiter, nor block. Limiters forget a watcher
// that nobody else keeps.
type Watcher struct {
	Owner any // a comparable value: its own changes are not told, see Reservation.CancelBy
	Tell  func(later bool)
}

// Watch may be called for a watcher that watches already.
func (l *Limiter) Watch(w *Watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, one := l.sleepersOf(), weak.Make(w)
	if slices.Contains(s.watchers, one) {
		return
	}
	if len(s.watchers) == cap(s.watchers) { // it grows: as many may be gone
		s.watchers = slices.DeleteFunc(s.watchers, gone)
	}
	s.watchers = append(s.watchers, one)
}

func (l *Limiter) Unwatch(w *Watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sleepersOf()
	if i := slices.Index(s.watchers, weak.Make(w)); i >= 0 {
		s.watchers = slices.Delete(s.watchers, i, i+1)
	}
}

func gone(w weak.Pointer[Watcher]) bool { return w.Value() == nil }

// tellWatchers skips the watchers of the owner that causes the change.
func (s *sleepers) tellWatchers(later bool) {
	some := false
	for _, w := range s.watchers {
		one := w.Value()
		if some = some || one == nil; one != nil && (s.causes == nil || one.Owner != s.causes) {
			one.Tell(later)
		}
	}
	if some {
		s.watchers = slices.DeleteFunc(s.watchers, gone)
	}
}

// CancelBy cancels a reservation, and tells no watcher of that owner: it knows.
func (r *Reservation) CancelBy(owner any) {
	r.do(func(p Promise) { p.Cancel() }, func(now int64) {
		if s := r.limiter.cold.sleepers; s != nil {
			s.causes = owner
			defer func() { s.causes = nil }()
		}
		r.limiter.settle(now, r, 0)
	})
}

// sleepersOf needs the limiter's lock.
func (l *Limiter) sleepersOf() *sleepers {
	if l.cold.sleepers == nil {
		l.cold.sleepers = new(sleepers)
	}
	return l.cold.sleepers
}

func (l *Limiter) Watchers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cap(l.sleepersOf().watchers)
}
