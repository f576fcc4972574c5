// Package invalid makes the errors for values that a package refuses.
package invalid

import "github.com/nextfree/pace/reserve"

// In returns the function that makes a package's errors: of an argument or option by its name, and what would be right.
func In(pkg string) func(name string, value any, want string) error {
	return func(name string, value any, want string) error {
		return &reserve.ValueError{Package: pkg, Name: name, Value: value, Want: want}
	}
}
