// Package invalid makes the errors for refused values.
package invalid

import (
	"fmt"

	"github.com/nextfree/pace/reserve"
)

// In returns the function that makes a package's errors.
func In(pkg string) func(name string, value any, want string) error {
	return func(name string, value any, want string) error {
		return &reserve.ValueError{Package: pkg, Name: name, Value: value, Want: want}
	}
}

// Apply applies options to settings, up to the first that is refused, as a nil option is.
func Apply[S any, O ~func(*S) error](
	valueError func(name string, value any, want string) error, settings *S, opts []O,
) error {
	for i, opt := range opts {
		if opt == nil {
			return valueError(fmt.Sprint("option ", i+1), nil, "an option")
		}
		if err := opt(settings); err != nil {
			return err
		}
	}
	return nil
}
