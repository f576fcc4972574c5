package file

import (
	"fmt"

	"github.com/nextfree/pace/reserve/shared"
)

// An Error says what went wrong with a file or its folder. Err is the operating system's error. Where this process may
// not use a file, as one of another user with mode 0600, it is in a *[shared.ConfigError].
type Error struct {
	Op      string // "open", "lock", "read", "write", "create"
	Path    string
	Err     error
	written bool // something may have been written
}

func (e *Error) Error() string { return fmt.Sprintf("file: can't %s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap returns Err, and [shared.ErrNotWritten] where nothing was written.
func (e *Error) Unwrap() []error {
	if e.written {
		return []error{e.Err}
	}
	return []error{e.Err, shared.ErrNotWritten}
}

// A CorruptError says that a file was cut off, overwritten, or is not of this package; removing it makes a new limiter.
type CorruptError struct {
	Path string
	Why  string // "it is cut off"
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("file: %s can't be believed: %s; remove it to start its limiter anew", e.Path, e.Why)
}

func (e *CorruptError) Unwrap() error { return shared.ErrNotWritten }

// A NetworkError says that a folder is on a network file system.
type NetworkError struct {
	Path   string
	System string // "nfs"
}

func (e *NetworkError) Error() string {
	return fmt.Sprintf("file: %s is on %s, whose locks can't be relied on; use a local folder", e.Path, e.System)
}
