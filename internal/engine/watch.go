package engine

import (
	"slices"
	"weak"
)

// A Watcher is told when a limiter's promised times become earlier, or later (a pause, a stop, Retime), except by time
// that passes. Tell runs under the limiter's lock: it must not call the limiter, nor block. A watcher that nobody else
// keeps is forgotten.
type Watcher struct {
	Owner any // a comparable value: its own changes are not told, see Reservation.CancelBy
	Tell  func(later bool)
}

// Watchers are those of a thing, guarded by its lock.
type Watchers []weak.Pointer[Watcher]

// Add may be called for a watcher that watches already.
func (w *Watchers) Add(watcher *Watcher) {
	one := weak.Make(watcher)
	if slices.Contains(*w, one) {
		return
	}
	if len(*w) == cap(*w) { // it grows: as many may be gone
		*w = slices.DeleteFunc(*w, gone)
	}
	*w = append(*w, one)
}

func gone(w weak.Pointer[Watcher]) bool { return w.Value() == nil }

// Tell skips the watchers of an owner that causes the change; nil: none does.
func (w *Watchers) Tell(later bool, causes any) {
	some := false
	for _, watcher := range *w {
		one := watcher.Value()
		if some = some || one == nil; one != nil && (causes == nil || one.Owner != causes) {
			one.Tell(later)
		}
	}
	if some {
		*w = slices.DeleteFunc(*w, gone)
	}
}

func (l *Limiter) Watch(w *Watcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sleepersOf().watchers.Add(w)
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
