package postgres

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/nextfree/pace/reserve/shared"
	"github.com/nextfree/pace/reserve/shared/internal/within"
)

// An Error says what went wrong with a table. A limiter wraps it in a *[shared.UnavailableError], or, where only a
// change of the database can help, in a *[shared.ConfigError].
type Error struct {
	Op      string // "create", "read", "write", or "wait" for other callers of this process
	Table   string
	State   string // SQLSTATE, five characters: "42P01"; "": it is not the server's error
	Err     error  // the driver's, or the cause of a context that is done
	written bool   // something may have been written
}

func (e *Error) Error() string {
	if e.State == "42P01" {
		return fmt.Sprintf("postgres: can't %s the table %q: %v; Create makes it", e.Op, e.Table, e.Err)
	}
	return fmt.Sprintf("postgres: can't %s the table %q: %v", e.Op, e.Table, e.Err)
}

// Unwrap returns Err, and [shared.ErrNotWritten] where nothing was written.
func (e *Error) Unwrap() []error {
	if e.written {
		return []error{e.Err}
	}
	return []error{e.Err, shared.ErrNotWritten}
}

func state(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// perhapsWritten is false if the server says that the statement failed, unless it was ending.
func perhapsWritten(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" || errors.Is(err, within.ErrHang) {
		return false
	}
	s := state(err)
	for _, class := range []string{"08", "57P", "58", "XX", "40003"} {
		if strings.HasPrefix(s, class) {
			return true
		}
	}
	return s == ""
}

func again(err error) bool {
	s := state(err)
	return s == "40001" || s == "40P01"
}

// wrong reports whether waiting does not cure an error. 42P05 and 26000 are a pooler's: another connection may do.
func wrong(err error) bool {
	s := state(err)
	return s != "42P05" && strings.HasPrefix(s, "42") || strings.HasPrefix(s, "28") || s == "3D000" || s == "3F000"
}
