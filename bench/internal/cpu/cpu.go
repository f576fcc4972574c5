// Package cpu reads the processor time of this process, on Unix.
package cpu

import (
	"syscall"
	"time"
)

// Time returns the processor time that this process has taken so far.
func Time() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
