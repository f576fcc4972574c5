package file

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
	moveFileEx   = kernel32.NewProc("MoveFileExW")
)

const (
	failImmediately = 1
	exclusive       = 2
	// Windows keeps others from reading what is locked, so a byte far behind all states is.
	lockedAt = 1 << 30
)

func tryLock(f *os.File) bool { return lockRange(f, exclusive|failImmediately) == nil }

func waitLock(f *os.File) error { return lockRange(f, exclusive) }

func lockRange(f *os.File, flags uintptr) error {
	at := syscall.Overlapped{OffsetHigh: lockedAt}
	ok, _, err := lockFileEx.Call(f.Fd(), flags, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	if ok == 0 {
		return err
	}
	return nil
}

func unlock(f *os.File) {
	at := syscall.Overlapped{OffsetHigh: lockedAt}
	_, _, _ = unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(&at)))
}

// An open file can't be removed.
func same(*os.File, string) bool { return true }

func publish(from, to string) error {
	a, err := syscall.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	b, err := syscall.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	ok, _, err := moveFileEx.Call(uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(b)), 0) // replaces nothing
	if ok == 0 {
		if errors.Is(err, syscall.ERROR_ALREADY_EXISTS) || errors.Is(err, syscall.ERROR_FILE_EXISTS) {
			return os.ErrExist
		}
		return err
	}
	return nil
}

var removesOpen = false

func syncDir(string) error { return nil }
