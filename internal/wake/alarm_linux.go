package wake

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// An alarm wakes one goroutine at a time with a timerfd, a descriptor that the kernel makes
// readable at the right nanosecond of CLOCK_MONOTONIC, the clock that Go's own monotonic time is.
// The goroutine is parked in the runtime's network poller meanwhile, as for a socket, and holds
// no thread.
//
// The poller alone is not enough: while every P has goroutines to run, the runtime looks at it
// only every 10 ms, but at its timers all the time. So the file also gets a read deadline, which
// is a timer of the runtime's. On an idle machine the descriptor is on time and the timer late,
// on a busy one the other way round; the first of them wakes.
type alarm struct {
	file *os.File
	conn syscall.RawConn
	step func(fd uintptr) bool // a.arm, bound once: binding allocates
	spec itimerspec

	start time.Time // what is being slept: until d after start
	d     time.Duration
	woken <-chan struct{} // or until there is a token in it
}

func newAlarm() (*alarm, error) {
	fd, err := timerfdCreate()
	if err != nil {
		return nil, err
	}
	a := &alarm{file: os.NewFile(fd, "timerfd")}
	a.step = a.arm
	// NewFile keeps silent when the poller doesn't take the descriptor; a deadline tells.
	if err = a.file.SetReadDeadline(time.Time{}); err == nil {
		a.conn, err = a.file.SyscallConn()
	}
	if err != nil {
		a.file.Close()
		return nil, err
	}
	return a, nil
}

// sleep parks until d after start, or until it is interrupted. Errors need no care: the
// deadline's is how the timer wakes, and the caller sleeps on a plain timer what may be missing.
func (a *alarm) sleep(start time.Time, d time.Duration, woken <-chan struct{}) {
	a.start, a.d, a.woken = start, d, woken
	// The deadline is not taken back: it is past when the sleep is over, and costs no wake-up
	// of its own.
	_ = a.file.SetReadDeadline(start.Add(d))
	_ = a.conn.Read(a.step)
}

// interrupt ends the sleep of one that finds a token in its channel.
func (a *alarm) interrupt() { _ = a.file.SetReadDeadline(longAgo) }

var longAgo = time.Unix(1, 0)

// arm is called by Read before the goroutine parks and after each wake-up, until it returns true.
// It doesn't read from the descriptor: setting it again clears it.
func (a *alarm) arm(fd uintptr) (over bool) {
	left := a.d - time.Since(a.start)
	if left <= 0 || len(a.woken) > 0 {
		return true
	}
	a.spec.value = syscall.NsecToTimespec(int64(left))
	timerfdSettime(fd, &a.spec)
	return false
}

const (
	// maxAlarms is how many descriptors a process gives to its sleepers. Only those in their
	// last stretch hold one, so 64 are enough for 64 / 1.5 ms = 42,000 wake-ups a second.
	// More would gain little: at such a rate the alarms wake the runtime every 25 us, and it
	// looks at everybody's plain timers then.
	maxAlarms = 64

	// retryAfter is how long nobody asks for a descriptor after one was refused. The process
	// may have none left (EMFILE), which passes, or be forbidden to (EPERM, ENOSYS under
	// seccomp), which doesn't: one try a second costs nothing.
	retryAfter = time.Second
)

// alarms is a bounded pool, filled as needed and never emptied.
type alarms struct {
	create func() (*alarm, error)

	mu      sync.Mutex
	idle    []*alarm  // the last one used is the first one taken
	left    int       // how many more may be created
	retryAt time.Time // not before
}

func newAlarms(n int, create func() (*alarm, error)) *alarms {
	return &alarms{create: create, left: n, idle: make([]*alarm, 0, n)}
}

// get returns an alarm for the caller alone, or nil if all are taken or none is to be had.
func (p *alarms) get(now time.Time) *alarm {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		a := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return a
	}
	if p.left == 0 || now.Before(p.retryAt) {
		return nil
	}
	a, err := p.create() // three system calls, at most maxAlarms times
	if err != nil {
		p.retryAt = now.Add(retryAfter)
		return nil
	}
	p.left--
	return a
}

func (p *alarms) put(a *alarm) {
	p.mu.Lock()
	p.idle = append(p.idle, a)
	p.mu.Unlock()
}
