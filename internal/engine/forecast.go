package engine

import (
	"iter"
	"time"
)

func (l *Limiter) Forecast(n int) time.Time {
	now := l.lock()
	defer l.mu.Unlock()
	return l.clock.Time(l.ledger.Forecast(now, max(1, n)))
}

func (l *Limiter) TakeUpTo(n int) (taken int) {
	t := l.clock.Now()
	if n < 1 || t < l.busy.Load() {
		return 0
	}
	now := l.lockFor(t)
	defer l.mu.Unlock()
	taken = l.ledger.TakeUpTo(now, n)
	l.granted += uint64(taken)
	return taken
}

// Behind returns how long a request for n permits would wait behind requests of the sizes ahead (each at least 1; nil:
// none), which are behind all that wait already; 292 years means never. If n is more than the limiter ever grants, it
// returns a *reserve.SizeError. It ignores WithMaxWait and deadlines.
//
// A size beyond a window counts as the whole window. With a window of 10 a second, behind 6, 6 and 6 a request for 4
// waits 2 s.
//
// Ahead runs under the limiter's lock, and must not call the limiter.
func (l *Limiter) Behind(ahead iter.Seq[int], n int) (wait time.Duration, err error) {
	return l.behind(l.clock.Now(), ahead, n)
}

func (l *Limiter) behind(t int64, ahead iter.Seq[int], n int) (wait time.Duration, err error) {
	now := l.lockFor(t)
	defer l.mu.Unlock()
	if err := l.tooLarge(n); err != nil {
		return 0, err
	}
	return max(0, until(l.ledger.Behind(now, ahead, n), now)), nil
}
