package wake

import (
	"cmp"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A kicker ends the runtime's epoll_wait at given moments, with a timerfd. The kernel makes that descriptor readable at
// the right nanosecond of CLOCK_MONOTONIC, the clock of Go's own timers. No goroutine reads it or waits for it. It is
// only in the runtime's epoll set, and when epoll_wait returns, the scheduler (findRunnable) looks for timers that are
// due before it waits again.
//
// That is how the scheduler works and not a promise. If it changes, timers are up to 1 ms late and nothing breaks.
// TestKickEndsThePollersWait tells. So it is where there is no descriptor, because the process has none left or may not
// make one.
//
// While every P has goroutines to run, none waits in epoll_wait, and the runtime looks at its timers all the time.
type kicker struct {
	mu    sync.Mutex
	file  *os.File // keeps the descriptor open and in the epoll set; nil: not made yet
	fd    uintptr
	retry time.Duration   // since start; the descriptor was refused, and is not asked for again before
	due   []time.Duration // moments since start to come, the next one last
	armed time.Duration   // the moment for which the descriptor is set
	spec  itimerspec
}

// A kick is one moment at which epoll_wait is to end. Guarded by the kicker's lock.
type kick struct{ at time.Duration } // 0: none

const (
	// maxKicks is how many moments are remembered. With more sleepers than that, the last to wake are up to 1 ms late if
	// nothing else wakes the process by then. At such numbers that is rare.
	maxKicks = 1024

	// retryAfter is how long no descriptor is asked for after one was refused. The process may have none
	// left (EMFILE), which passes, or be forbidden to (EPERM, ENOSYS under seccomp), which doesn't: one try a
	// second costs nothing.
	retryAfter = time.Second
)

var kicks kicker

// set moves a kick to a moment. Before it the kick is at another one, or none.
func (k *kicker) set(one *kick, at time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil && !k.open() {
		return
	}
	k.remove(one)
	i, _ := k.find(at)
	if len(k.due) == maxKicks {
		if i == 0 {
			return
		}
		i--
		k.due = slices.Delete(k.due, 0, 1) // the latest one
	}
	k.due = slices.Insert(k.due, i, at)
	one.at = at
	k.arm()
}

// clear removes a kick that is over, or not needed any more, and sets the descriptor for the next one.
func (k *kicker) clear(one *kick) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(one)
	k.arm()
}

func (k *kicker) remove(one *kick) {
	if i, found := k.find(one.at); found && one.at != 0 {
		k.due = slices.Delete(k.due, i, i+1)
	}
	one.at = 0
}

func (k *kicker) find(at time.Duration) (i int, found bool) {
	return slices.BinarySearchFunc(k.due, at, func(a, b time.Duration) int { return cmp.Compare(b, a) })
}

// arm sets the descriptor for the next moment that is to come. The kicker must be locked.
func (k *kicker) arm() {
	n := len(k.due)
	if n == 0 || k.due[n-1] == k.armed {
		return
	}
	now := sinceStart()
	for n > 0 && k.due[n-1] <= now { // of a sleeper that is being woken
		n--
	}
	if k.due = k.due[:n]; n > 0 {
		k.armed = k.due[n-1]
		k.spec.value = syscall.NsecToTimespec(int64(k.armed - now))
		timerfdSettime(k.fd, &k.spec) // setting it again makes it unreadable until then
	}
}

// open makes the descriptor, if the kernel gives one. The kicker must be locked.
func (k *kicker) open() bool {
	now := sinceStart()
	if now < k.retry {
		return false
	}
	fd, err := timerfdCreate()
	if err != nil {
		k.retry = now + retryAfter
		return false
	}
	k.fd, k.file = fd, os.NewFile(fd, "timerfd") // NewFile puts it into the epoll set, since it doesn't block
	k.due = make([]time.Duration, 0, maxKicks)
	return true
}
