package file

import (
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	failImmediately = 1
	exclusive       = 2
	// Windows keeps others from reading what is locked, so a byte far behind all states is.
	lockedAt = 1 << 30

	busy = syscall.Errno(33) // ERROR_LOCK_VIOLATION: another process has the lock
)

func tryLock(f *os.File) error {
	at := syscall.Overlapped{OffsetHigh: lockedAt}
	ok, _, err := lockFileEx.Call(f.Fd(), exclusive|failImmediately, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	if ok == 0 {
		return err
	}
	return nil
}

func unlock(f *os.File) {
	at := syscall.Overlapped{OffsetHigh: lockedAt}
	_, _, _ = unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&at)))
}
