package line

import "github.com/nextfree/pace/internal/saturate"

func (l *Line[S]) Unplace() { l.known = 0 }

// Confirm computes states anew if a request would be granted at now.
func (l *Line[S]) Confirm(now int64) {
	if l.known == 0 || l.wait.All()[0].state.When() <= now {
		l.Release()
	}
}

// Keep says that the limit changes: each waiting request is granted no later than is promised now.
func (l *Line[S]) Keep() {
	l.Last()
	all := l.wait.All()
	for i := range all {
		all[i].latest = min(all[i].latest, all[i].state.When())
	}
	l.known, l.kept = 0, true
}

// Release undoes Keep: more is used than a promise could know, or the clock stops.
func (l *Line[S]) Release() {
	l.known = 0
	if !l.kept {
		return
	}
	l.kept = false
	all := l.wait.All()
	for i := range all {
		if r := &all[i]; r.latest != Asap {
			r.latest = Never
		}
	}
}

func (l *Line[S]) Shift(step int64) {
	l.Offset += step
	all := l.wait.All()
	for i := range all {
		if r := &all[i]; r.latest != Asap && r.latest != Never {
			r.latest = saturate.Add(r.latest, step)
		}
	}
	l.known = 0
}
