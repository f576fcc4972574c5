package wake

import (
	"cmp"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A kicker ends the runtime's epoll_wait at given moments, with a timerfd, which becomes readable at the right
// nanosecond of the clock of Go's timers. No goroutine reads it: when epoll_wait returns, the scheduler (findRunnable)
// runs the timers that are due. If that changes (TestKickEndsThePollersWait tells), timers are up to 1 ms late.
type kicker struct {
	mu    sync.Mutex
	file  *os.File // keeps the descriptor open and in the epoll set; nil: not made yet
	fd    uintptr
	retry time.Duration   // since start; no descriptor is asked for before
	due   []time.Duration // moments since start to come, the next one last
	armed time.Duration   // the moment for which the descriptor is set
	spec  itimerspec
}

// A kick is a moment at which epoll_wait is to end, guarded by the kicker's lock.
type kick struct{ at time.Duration } // 0: none

const (
	maxKicks   = 1024        // moments to remember; of more sleepers, the last to wake may be up to 1 ms late
	retryAfter = time.Second // after the kernel refused a descriptor
)

var kicks kicker

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

// arm sets the descriptor for the next moment. The kicker is locked.
func (k *kicker) arm() {
	n, now := len(k.due), sinceStart()
	for n > 0 && k.due[n-1] <= now { // of a sleeper that is being woken, or was set when it had ended
		n--
	}
	if k.due = k.due[:n]; n > 0 && k.due[n-1] != k.armed {
		k.armed = k.due[n-1]
		k.spec.value = syscall.NsecToTimespec(int64(k.armed - now))
		timerfdSettime(k.fd, &k.spec) // setting it again makes it unreadable until then
	}
}

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
