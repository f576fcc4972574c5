// Package wake ends a sleep at a moment, to within tens of microseconds and without burning CPU.
//
// On an idle Linux machine a Go timer is up to 1 ms late. The runtime waits for it in epoll_wait, whose timeout is
// whole milliseconds (golang.org/issue/44343, golang.org/issue/47084). So a sleeper sleeps on a plain timer, and beside
// it the kernel's high-resolution timer ends epoll_wait at the right nanosecond. Then the scheduler runs the timers
// that are due: see kick_linux.go. On other systems, and wherever the kernel gives no timerfd, the plain timer is all
// there is.
package wake

import (
	"context"
	"time"
)

// A Sleeper is a goroutine's place to sleep. Another goroutine may set the time at which the sleep ends (Set) and end
// it at once (Wake). Neither wakes it only to look at its time again. One goroutine may sleep at a time. Reset makes
// the Sleeper ready for use, and for use by another one.
//
// Once warm, its methods allocate nothing. In a testing/synctest bubble a sleep ends at exactly its
// time.
type Sleeper struct {
	timer   *time.Timer
	woken   chan struct{} // holds a token once Wake was called
	bubbled bool          // both were made in a testing/synctest bubble, and may be used only there
	kick    kick
}

// shortest is the wait that is not worth a sleep. To park a goroutine and to wake it took 14 to 28 us of processor
// time, more than 10 us of looking at the clock. It doesn't yield (runtime.Gosched) either: behind a global queue and
// two busy local ones that made a wait of 8 us take 40 ms.
const shortest = 10 * time.Microsecond

// Reset makes the sleeper ready for use. A Set or Wake from before is forgotten.
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

// Set makes the sleep end when d has passed, or as soon as it begins if d is not positive. Any goroutine may call it,
// before the sleep and during it. The last call counts. [Untimed] or longer ends nothing.
//
// With slack the sleep ends later, by less than that, together with others of the process that have the
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
		// The timer counts from a moment just before this one. If its kick came earlier, the timer would not be due.
		kicks.set(&s.kick, s.now()+d)
	}
}

// now returns the time since a moment that is the same for all sleepers that may share their wake-ups.
func (s *Sleeper) now() time.Duration {
	if s.bubbled {
		return time.Duration(time.Now().UnixNano())
	}
	return sinceStart()
}

// Wake ends the sleeper's sleep, or else its next one. Any goroutine may call it.
func (s *Sleeper) Wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// Woken returns the channel on which a Wake arrives, for callers that wait with a clock of their own.
func (s *Sleeper) Woken() <-chan struct{} { return s.woken }

// Sleep blocks until the time that Set says, a Wake, or the end of ctx. It may end up to 10 us early,
// and also for no reason: the caller looks at its clock and its context again.
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

// Short reports whether d is too short to sleep: then Spin takes less processor time.
func (s *Sleeper) Short(d time.Duration) bool { return d <= shortest && !s.bubbled }

// Spin blocks until d has passed, looking at the clock.
func Spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// Untimed is longer than any sleep with a time: 100 years.
const Untimed = 100 * 366 * 24 * time.Hour

// Sleep waits until d has passed since the call, on the monotonic clock. It ends earlier if ctx is done or moved is
// closed. It never ends early for any other reason, and at once if d is not positive. It does not say what ended it.
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

// bubbled reports whether now was read in a testing/synctest bubble, the one place where the time
// has no monotonic part.
func bubbled(now time.Time) bool {
	return now == now.Round(0) // Round(0) takes the monotonic part away
}

var start = time.Now()

// sinceStart reads the monotonic clock.
func sinceStart() time.Duration { return time.Since(start) }
