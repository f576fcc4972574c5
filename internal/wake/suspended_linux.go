package wake

import (
	"syscall"
	"time"
	"unsafe"
)

const clockBoottime = 7 // CLOCK_BOOTTIME: CLOCK_MONOTONIC and the time in which the machine was suspended

// Suspended returns for how long the machine was suspended since it started: at least and at most, as the program may
// be stopped between the readings of two clocks.
func Suspended() (least, most time.Duration) {
	before, _ := clock(clockMonotonic)
	boot, ok := clock(clockBoottime)
	after, also := clock(clockMonotonic)
	if !ok || !also {
		return 0, 0
	}
	return boot - after, boot - before
}

func clock(id uintptr) (time.Duration, bool) {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), errno == 0
}
