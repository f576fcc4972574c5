package shared

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/nextfree/pace/internal/invalid"
)

var valueError = invalid.In("shared")

// An UnavailableError says that the store could not be asked, or did not answer in time: the request may have been
// charged. With [FailOpen] and [Local] only methods that look or change return it.
type UnavailableError struct {
	Key     string        // as in the store: "pace:{api}"
	Timeout time.Duration // that passed, if that was the reason: see [WithTimeout]; otherwise 0
	Err     error         // the last failure
}

func (e *UnavailableError) Error() string {
	if e.Timeout > 0 {
		return fmt.Sprintf("shared: no answer for %q within %v (WithTimeout): %v", e.Key, e.Timeout, e.Err)
	}
	return fmt.Sprintf("shared: no answer for %q: %v", e.Key, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// A ConfigError says that waiting does not help: the key holds something else (WRONGTYPE, a [StateError]), as after a
// change of the algorithm, or the user may not use it (NOPERM, NOAUTH). In the first case [Limiter.Reset] makes the key
// a new limiter's. No fallback hides it.
type ConfigError struct {
	Key string // as in the store
	Err error  // the store's answer
}

func (e *ConfigError) Error() string {
	var unreadable *StateError
	advice := ""
	if errors.As(e.Err, &unreadable) || strings.Contains(e.Err.Error(), "WRONGTYPE") {
		advice = "; Reset makes the key a new limiter's, or delete it"
	}
	return fmt.Sprintf("shared: the key %q is refused: %v%s", e.Key, e.Err, advice)
}

func (e *ConfigError) Unwrap() error { return e.Err }

// A StoreError says what a [Store] of this module could not do. A limiter wraps it in an *[UnavailableError], or in a
// *[ConfigError] where waiting can't help.
type StoreError struct {
	Store   string // the package: "file"
	Op      string // "open", "create", "lock", "read" or "write"
	What    string // "/var/lib/mytool/limits", `the table "limits"`
	Err     error  // the driver's or the operating system's, or the cause of a context that is done
	Written bool   // something may have been written
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("%s: can't %s %s: %v", e.Store, e.Op, e.What, e.Err)
}

// Unwrap returns Err, and [ErrNotWritten] where nothing was written.
func (e *StoreError) Unwrap() []error {
	if e.Written {
		return []error{e.Err}
	}
	return []error{e.Err, ErrNotWritten}
}

// A CurveError says that the script can't do a policy's arithmetic: a window's, a calendar's, or a curve whose price
// is not a smooth.LinearPrice.
type CurveError struct{ Why string }

func (e *CurveError) Error() string { return "shared: the policy can't be shared: " + e.Why }

// errLate says that the store ran the call after its time, and so decided nothing.
var errLate = errors.New("after its time")

var (
	errPatience = errors.New("shared: no answer in time")         // for a caller that leaves in time for the fallback
	errAborted  = errors.New("shared: the client did not return") // for the other callers, if it panics
)

// wrong are answers that waiting does not cure. Redis before 7 wraps an error inside a script in another.
var wrong = []string{
	"WRONGTYPE", "NOPERM", "NOAUTH", "WRONGPASS", "CROSSSLOT", "ERR Error compiling", "unknown command",
	"can't run this command", "ACL failure", // Redis 7, Valkey 8: the user may run the script, but not a command in it
}

func failure(key string, err error, timeout time.Duration) error {
	var refused *ConfigError
	var unreadable *StateError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &unreadable):
		return &ConfigError{Key: key, Err: err}
	}
	if late(err) {
		return &UnavailableError{Key: key, Timeout: timeout, Err: err}
	}
	text := err.Error()
	for _, w := range wrong {
		if strings.Contains(text, w) {
			return &ConfigError{Key: key, Err: err}
		}
	}
	return &UnavailableError{Key: key, Err: err}
}

func maybeCharged(err error) bool {
	var refused interface{ RedisError() }
	var network *net.OpError
	switch {
	case errors.Is(err, errLate), errors.Is(err, ErrNotWritten), errors.As(err, &refused):
		return false
	case errors.As(err, &network) && network.Op == "dial":
		return false
	}
	return true
}
