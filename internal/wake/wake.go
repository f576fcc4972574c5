// Package wake sleeps until a moment, to within tens of microseconds and without burning CPU.
//
// On an idle Linux machine a Go timer is up to 1 ms late, because the runtime waits for it in
// epoll_wait, whose timeout is whole milliseconds (golang.org/issue/44343,
// golang.org/issue/47084). Sleep waits on a plain timer only until shortly before the moment, and
// has the kernel's high-resolution timer wake it for the rest: see sleep_linux.go. On other
// systems, and wherever that can't be had, it is a plain timer throughout.
package wake

import (
	"context"
	"sync"
	"time"
)

// A Sleeper is one that sleeps, and can be woken. It may be used again and again, by one
// goroutine at a time, after a Reset.
type Sleeper struct {
	token chan struct{} // it has been woken
	woken <-chan struct{}
	last  stretch
}

// Reset makes the sleeper ready for use. A Wake from before is forgotten.
func (s *Sleeper) Reset() {
	if s.token == nil {
		s.token = make(chan struct{}, 1)
		s.woken = s.token
	}
	select {
	case <-s.token:
	default:
	}
}

// Wake ends the sleeper's sleep, or else its next one. Any goroutine may call it.
func (s *Sleeper) Wake() {
	select {
	case s.token <- struct{}{}:
	default:
	}
	s.last.interrupt()
}

// Woken returns the channel on which a Wake arrives, for those that wait with a clock of their own.
func (s *Sleeper) Woken() <-chan struct{} { return s.woken }

// Untimed is a length for Sleep: until ctx or a Wake ends it. So is all that is longer than 100 years.
const Untimed = 100 * 366 * 24 * time.Hour

// Sleep waits until d has passed, on the monotonic clock and counted from the call, or until ctx is
// done or Wake is called, whichever comes first. It never ends early for any other reason, and at
// once if d is not positive.
//
// Sleep does not say what ended it: the caller looks at its clock and its context again. A ctx that
// ends in the last 1.5 ms may be noticed only when d has passed.
//
// Any number of sleepers may sleep at once. Once warm, Sleep allocates nothing. In a
// testing/synctest bubble it takes exactly d of the bubble's time.
func (s *Sleeper) Sleep(ctx context.Context, d time.Duration) {
	switch {
	case d <= 0:
	case d >= Untimed:
		select {
		case <-ctx.Done():
		case <-s.woken:
		}
	default:
		if start := time.Now(); bubbled(start) {
			s.sleepBubbled(ctx, d)
		} else {
			s.sleep(ctx, start, d)
		}
	}
}

// Sleep is a Sleeper's, of one that is woken when moved is closed. In the last 1.5 ms that is
// noticed only when d has passed.
func Sleep(ctx context.Context, d time.Duration, moved <-chan struct{}) {
	s := Sleeper{woken: moved}
	s.Sleep(ctx, d)
}

// bubbled reports whether now was read in a testing/synctest bubble, the one place where the time
// has no monotonic part.
func bubbled(now time.Time) bool {
	return now == now.Round(0) // Round(0) takes the monotonic part away
}

// sleepBubbled shares nothing: the runtime crashes the program when a timer made in one bubble is
// used outside it.
func (s *Sleeper) sleepBubbled(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.woken:
	}
}

// timers holds stopped timers, none of them from a bubble.
var timers = sync.Pool{New: func() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}}

// sleepOnTimer waits on a plain timer until d after start, and returns true, or until ctx or a Wake
// comes first, and returns false.
func (s *Sleeper) sleepOnTimer(ctx context.Context, start time.Time, d time.Duration) bool {
	left := d - time.Since(start)
	if left <= 0 {
		return true
	}
	timer := timers.Get().(*time.Timer)
	defer func() {
		timer.Stop()
		timers.Put(timer)
	}()
	// One round, unless GODEBUG=asynctimerchan=1 left an old tick in the channel.
	for ; left > 0; left = d - time.Since(start) {
		timer.Reset(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		case <-s.woken:
			return false
		}
	}
	return true
}
