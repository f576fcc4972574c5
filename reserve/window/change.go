package window

import (
	"math"

	"github.com/nextfree/pace/internal/engine"

	"github.com/nextfree/pace/internal/saturate"
)

func (l *ledger) Pause(now, until int64) bool {
	l.Advance(now)
	until = min(until, longest) // so that nothing is lost when it is ended early
	by := until - max(now, l.until)
	if by <= 0 {
		return false
	}
	l.until = until
	l.delay(now, by)
	l.Held = true
	return true
}

// Stop lets no request go before a time while the window's clock goes on, as at a server that refuses.
func (l *ledger) Stop(now, until int64) bool {
	l.Advance(now)
	until = min(until, longest)
	if until <= max(now, l.Stopped) {
		return false
	}
	l.Stopped = until
	l.Unplace()
	return true
}

// Said does nothing: a window is corrected by Charge.
func (l *ledger) Said(int64, float64, int64) {}

func (l *ledger) Paused() int64 { return max(l.until, l.Stopped) }

func (l *ledger) Resume(now int64) bool {
	pause, stop := l.until-now, l.Stopped > now
	if stop {
		l.Stopped = now
		l.Unplace()
	}
	if pause > 0 {
		l.until = now
		l.delay(now, -pause)
	}
	return pause > 0 || stop
}

// delay sets the window's clock back. Waiting requests keep their times on it, unless a stop decides them.
func (l *ledger) delay(now, by int64) {
	if l.Stopped > now {
		l.Unplace()
	}
	l.Offset -= by
}

func (l *ledger) SetRate(now int64, permitsPerSecond float64) {
	if permitsPerSecond != l.rate {
		l.change(now, int(l.size), l.length(permitsPerSecond), permitsPerSecond)
	}
}

func (l *ledger) Change(now int64, to engine.Ledger) {
	of := to.(*ledger)
	l.change(now, int(of.size), of.per, of.rate)
	l.margin = of.margin
}

func (l *ledger) Retime(now int64, permitsPerSecond float64) {
	l.Advance(now)
	l.SetRate(now, permitsPerSecond)
	l.Release()
}

func (l *ledger) change(now int64, size int, per int64, rate float64) {
	l.Advance(now)
	l.Keep()
	l.size, l.per, l.rate = int64(size), per, rate
}

func (l *ledger) length(permitsPerSecond float64) int64 {
	per := length(int(l.size), permitsPerSecond)
	if per > 0 {
		per = min(saturate.Add(per, l.margin), longest)
	}
	return per
}

// length returns the nanoseconds of n permits at a rate: at least 1; 0 for +Inf.
func length(n int, permitsPerSecond float64) int64 {
	if math.IsInf(permitsPerSecond, 1) {
		return 0
	}
	ns := math.Round(float64(n) / permitsPerSecond * 1e9)
	if ns >= float64(longest) {
		return longest
	}
	return max(1, int64(ns))
}
