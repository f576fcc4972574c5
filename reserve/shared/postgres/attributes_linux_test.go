package postgres_test

import "syscall"

// attributes has a server run as a user, and end when the tests do, in whichever way.
func attributes(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who, Pdeathsig: syscall.SIGKILL}
}
