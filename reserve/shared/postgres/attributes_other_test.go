//go:build unix && !linux

package postgres_test

import "syscall"

func attributes(who *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: who}
}
