package wake

import (
	"syscall"
	"unsafe"
)

// The two system calls that package syscall has numbers but no functions for. Neither blocks, so
// the scheduler isn't told of them (RawSyscall).

const (
	clockMonotonic  = 1                  // CLOCK_MONOTONIC
	timerfdNonblock = syscall.O_NONBLOCK // TFD_NONBLOCK: defined so
	timerfdCloexec  = syscall.O_CLOEXEC  // TFD_CLOEXEC
)

// itimerspec is the kernel's struct itimerspec. A Timespec has 32-bit fields on 32-bit machines,
// as the system call that syscall.SYS_TIMERFD_SETTIME names there has: timerfd_settime64 is
// another one. The times that are set are relative and under two milliseconds, so nothing of it ends in 2038.
type itimerspec struct {
	interval syscall.Timespec // zero: once
	value    syscall.Timespec // from now
}

func timerfdCreate() (fd uintptr, err error) {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, timerfdNonblock|timerfdCloexec, 0)
	if errno != 0 {
		return 0, errno
	}
	return fd, nil
}

// timerfdSettime sets the timer to spec from now.
func timerfdSettime(fd uintptr, spec *itimerspec) {
	// It fails only for arguments that are never given, or where seccomp forbids it. The deadline wakes then.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(spec)), 0, 0, 0)
}
