package engine

import (
	"time"
)

// SetRate needs a positive rate, and so does Retime.
func (l *Limiter) SetRate(permitsPerSecond float64) {
	l.change(true, func(now int64) bool { l.ledger.SetRate(now, permitsPerSecond); return true })
}

func (l *Limiter) Retime(permitsPerSecond float64) {
	l.change(true, func(now int64) bool { l.ledger.Retime(now, permitsPerSecond); return true })
}

func (l *Limiter) change(later bool, change func(now int64) (changed bool)) {
	now := l.lock()
	defer l.mu.Unlock()
	if change(now) {
		l.changed(now, later)
	}
}

// SetPolicy returns which policy would fit, if not this.
func (l *Limiter) SetPolicy(p *Policy) (want string) { return l.replace(l.clock.Now(), p, false) }

// replace is SetPolicy at a reading. Waits scale with the rate, as with Retime, if retime is true.
func (l *Limiter) replace(t int64, p *Policy, retime bool) (want string) {
	now := l.lockFor(t)
	defer l.mu.Unlock()
	if want := l.cold.policy.differs(p); want != "" {
		return want
	}
	if _, ok := l.ledger.(Changer); !ok && p.terms.Curve == nil {
		return "a policy of a variant whose ledger is a Changer"
	}
	if retime && p.terms.Curve != nil {
		l.ledger.Retime(now, p.terms.Curve.Rate)
	}
	l.cold.policy = p
	p.Change(now, l.ledger, l.clock.Time)
	l.changed(now, true)
	return ""
}

func (l *Limiter) PauseUntil(t time.Time) { l.stop(t, l.ledger.Pause) }

// Stop is PauseUntil for a server that refuses: permits used before leave a window meanwhile.
func (l *Limiter) Stop(t time.Time) {
	if o, ok := l.ledger.(Observer); ok {
		l.stop(t, o.Stop)
	} else {
		l.stop(t, l.ledger.Pause)
	}
}

func (l *Limiter) stop(t time.Time, stop func(now, until int64) (changed bool)) {
	until := l.clock.Since(t)
	l.change(true, func(now int64) bool { return stop(now, until) })
}

func (l *Limiter) Resume() { l.change(false, l.ledger.Resume) }

// changed follows times that may have become earlier, or later, too.
func (l *Limiter) changed(now int64, later bool) {
	l.free()
	l.version.Add(1)
	s := l.cold.sleepers
	if s == nil {
		return
	}
	s.tell(l, now)
	if later {
		s.check(l, now, 0)
	}
	s.watchers.Tell(later, s.causes)
}

// Said tells a quota by the calendar how many permits a server has left until then.
func (l *Limiter) Said(left float64, end time.Time) {
	if o, ok := l.ledger.(Observer); ok {
		l.stop(end, func(now, end int64) bool {
			o.Said(now, left, end)
			return true
		})
	}
}
