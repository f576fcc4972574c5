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

// itimerspec is the kernel's. On 32-bit machines a Timespec has 32-bit fields, as SYS_TIMERFD_SETTIME has there. Times
// are relative: nothing ends in 2038.
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

func timerfdSettime(fd uintptr, spec *itimerspec) {
	// It fails only for arguments that are never given, or under seccomp. The deadline wakes then.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(spec)), 0, 0, 0)
}
