//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpu returns the processor time that the program has used: on a machine that does other
// things meanwhile it says more than the time that has passed.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only for bad arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
