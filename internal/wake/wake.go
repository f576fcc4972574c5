// Package wake ends a sleep at a moment, to within tens of microseconds and without burning CPU.
//
// On an idle Linux machine a Go timer is up to 1 ms late: the runtime waits for it in epoll_wait, whose timeout is
// whole milliseconds (golang.org/issue/44343, golang.org/issue/47084). So a timerfd ends epoll_wait at the right
// nanosecond, and the scheduler runs the timers that are due.
package wake

import (
	"context"
	"time"
)

// A Sleeper lets one goroutine sleep. Another may move the sleep's end (Set), which wakes nobody, or end it at once
// (Wake). Once warm, its methods allocate nothing. In a testing/synctest bubble a sleep ends exactly in time.
type Sleeper struct {
	timer   *time.Timer
	woken   chan struct{} // holds a token once Wake was called
	bubbled bool          // both were made in a testing/synctest bubble, and may be used only there
	kick    kick
}

// shortest is the wait that is not worth a sleep: parking and waking a goroutine took 14 to 28 us of processor time.
// runtime.Gosched made a wait of 8 us take 40 ms behind busy queues.
const shortest = 10 * time.Microsecond

// Reset makes the sleeper ready for any goroutine.
func (s *Sleeper) Reset() {
	if bubbled := bubbled(time.Now()); s.timer == nil || bubbled || s.bubbled {
		s.timer, s.woken, s.bubbled = time.NewTimer(Untimed), make(chan struct{}, 1), bubbled
	}
	s.timer.Stop()
	select {
	case <-s.woken:
	default:
	}
}

// Set makes the sleep end after d. Any goroutine may call it, before and during the sleep; the last call counts.
// [Untimed] or longer ends nothing. With slack the sleep ends later, by less than that, together with others of the
// same slack.
func (s *Sleeper) Set(d, slack time.Duration) {
	switch {
	case d >= Untimed:
		s.timer.Stop()
		return
	case d <= 0, slack == 0 && s.Short(d): // the sleeper waits for the rest: see Spin
		s.Wake()
		return
	}
	if slack > 0 {
		end := s.now() + d
		if over := end % slack; over > 0 {
			d += slack - over
		}
	}
	s.timer.Reset(d)
	if !s.bubbled {
		// After the timer, so that it is due when its kick comes.
		kicks.set(&s.kick, s.now()+d)
	}
}

func (s *Sleeper) now() time.Duration {
	if s.bubbled {
		return time.Duration(time.Now().UnixNano())
	}
	return sinceStart()
}

// Wake ends the sleep, or else the next; any goroutine may call it.
func (s *Sleeper) Wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *Sleeper) Woken() <-chan struct{} { return s.woken }

// Sleep blocks until the time of Set, a Wake, or the end of ctx. It may end up to 10 us early, and for no reason.
func (s *Sleeper) Sleep(ctx context.Context) {
	select {
	case <-s.timer.C:
	case <-s.woken:
	case <-ctx.Done():
	}
	if !s.bubbled {
		kicks.clear(&s.kick)
	}
}

// Short reports whether Spin is cheaper than to sleep for d.
func (s *Sleeper) Short(d time.Duration) bool { return d <= shortest && !s.bubbled }

func Spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

const Untimed = 100 * 366 * 24 * time.Hour

// Sleep waits until d has passed, ctx is done, or moved is closed.
func Sleep(ctx context.Context, d time.Duration, moved <-chan struct{}) {
	start := time.Now()
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	if d < Untimed && !bubbled(start) {
		var own kick
		kicks.set(&own, sinceStart()+d)
		defer kicks.clear(&own)
	}
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-moved:
	}
}

// bubbled reports whether now was read in a testing/synctest bubble: only there it has no monotonic part.
func bubbled(now time.Time) bool {
	return now == now.Round(0) // Round(0) takes the monotonic part away
}

var start = time.Now()

func sinceStart() time.Duration { return time.Since(start) }
