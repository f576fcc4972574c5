package server

import (
	"os/exec"
	"syscall"
)

// dieWithUs kills the server if the tests end without their cleanup: a panic, a time-out.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
