// Package wake sleeps until a moment, to within tens of microseconds and without burning CPU.
//
// On an idle Linux machine a Go timer is up to 1 ms late, because the runtime waits for it in epoll_wait, whose
// timeout is whole milliseconds (golang.org/issue/44343, golang.org/issue/47084). Sleep waits on a plain timer only until
// shortly before the moment, and has the kernel's high-resolution timer wake it for the rest: see sleep_linux.go.
// On other systems, and wherever that can't be had, it is a plain timer throughout.
package wake

import (
	"context"
	"sync"
	"time"
)

// Sleep waits until d has passed, on the monotonic clock and counted from the call, or until ctx is done or moved
// is closed, whichever comes first. A nil moved never closes. It never ends early for any other reason, and at
// once if d is not positive.
//
// Sleep does not say what ended it: the caller looks at its clock and its context again. A ctx or a moved that
// comes in the last 1.5 ms may be noticed only when d has passed.
//
// It may be called by any number of goroutines at once and, once warm, allocates nothing. In a testing/synctest bubble
// it takes exactly d of the bubble's time.
func Sleep(ctx context.Context, d time.Duration, moved <-chan struct{}) {
	if d <= 0 {
		return
	}
	start := time.Now()
	if bubbled(start) {
		sleepBubbled(ctx, d, moved)
		return
	}
	sleep(ctx, start, d, moved)
}

// bubbled reports whether now was read in a testing/synctest bubble, the one place where the time has no monotonic part.
func bubbled(now time.Time) bool {
	return now == now.Round(0) // Round(0) takes the monotonic part away
}

// sleepBubbled shares nothing: the runtime crashes the program when a timer made in one bubble is used outside it.
func sleepBubbled(ctx context.Context, d time.Duration, moved <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-moved:
	}
}

// timers holds stopped timers, none of them from a bubble.
var timers = sync.Pool{New: func() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}}

// sleepOnTimer waits on a plain timer until d after start, and returns true, or until ctx or moved comes first, and
// returns false.
func sleepOnTimer(ctx context.Context, start time.Time, d time.Duration, moved <-chan struct{}) bool {
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
		case <-moved:
			return false
		}
	}
	return true
}
