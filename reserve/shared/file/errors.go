package file

import (
	"fmt"

	"github.com/nextfree/pace/reserve/shared"
)

func failed(op, path string, err error) *shared.StoreError {
	return &shared.StoreError{Store: "file", Op: op, What: path, Err: err}
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
